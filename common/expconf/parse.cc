#include "common/expconf/parse.h"

#include <algorithm>

#include "common/base/json.h"
#include "common/expconf/command.h"
#include "common/expconf/layers.h"
#include "common/expconf/node.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

constexpr int kUser = 0;
constexpr std::int64_t kMaxCommandSlots = 100'000;

/// Layers to merge, highest precedence first, and the names of their sources.
struct Stack {
  std::vector<std::string> names;
  std::vector<YamlNode> layers;
  Policies policies;  ///< combined constraints; the invariants are layers
  std::vector<int> policy_sources;
  std::vector<int> users{kUser};  ///< sources written by users

  int add_name(std::string name) {
    names.push_back(std::move(name));
    return static_cast<int>(names.size()) - 1;
  }
  void add(std::string name, YamlNode tree) {
    set_source(tree, add_name(std::move(name)));
    layers.push_back(std::move(tree));
  }
};

/// Error for a document without a map at the top level.
tl::unexpected<Error> not_a_map(const YamlNode& root, const std::string& file) {
  Reader reader(file);
  if (root.is_null()) {
    const YamlNode start{.line = 1, .column = 1};
    reader.problem(start, "", "E-CFG-MISSING", "config is empty; it needs at least entrypoint and searcher");
  } else {
    reader.problem(root, "", "E-CFG-TYPE",
                   "top level must be a map, found " + std::string(kind_name(root.kind)));
  }
  return fail(reader.take_problems());
}

/// Removes and returns `resources.slots`: the slots of commands, which share templates with experiments.
std::optional<YamlNode> take_command_slots(YamlNode& tree) {
  const auto resources = std::find_if(tree.entries.begin(), tree.entries.end(),
                                      [](const YamlEntry& entry) { return entry.key == "resources"; });
  if (resources == tree.entries.end() || !resources->value.is_map()) return std::nullopt;
  std::vector<YamlEntry>& entries = resources->value.entries;
  const auto slots = std::find_if(entries.begin(), entries.end(),
                                  [](const YamlEntry& entry) { return entry.key == "slots"; });
  if (slots == entries.end()) return std::nullopt;
  YamlNode taken = std::move(slots->value);
  entries.erase(slots);
  return taken;
}

/// Builds the layers in order of precedence, see Defaults. The user's file is source 0.
Result<Stack> stack_of(YamlNode user, const std::string& file, const Defaults& defaults) {
  Stack stack;
  stack.add_name(file);
  for (const Document& each : defaults.policies) {
    TRY_ASSIGN(Policies policies, read_policies(each.text, each.name, Workload::kExperiment));
    tighten(stack.policies, policies);
    stack.policy_sources.push_back(static_cast<int>(stack.names.size()));
    stack.add(each.name, std::move(policies.invariants));
  }
  stack.layers.push_back(std::move(user));
  if (defaults.template_) {
    TRY_ASSIGN(YamlNode tree, parse_yaml(defaults.template_->text, defaults.template_->name));
    if (!tree.is_null() && !tree.is_map()) return not_a_map(tree, defaults.template_->name);
    // Checked when the template was stored.
    (void)take_command_slots(tree);
    stack.users.push_back(static_cast<int>(stack.names.size()));
    stack.add(defaults.template_->name, std::move(tree));
  }
  if (const Json* pool = find_pool_defaults(defaults, stack.layers))
    stack.add(kPoolDefaults, node_from_json(*pool));
  stack.add("the master's task_container_defaults", node_from_json(defaults.task_container_defaults));
  Json lowest = Json::object();
  if (!defaults.checkpoint_storage.is_null()) lowest["checkpoint_storage"] = defaults.checkpoint_storage;
  if (!defaults.entrypoint.empty()) lowest["entrypoint"] = defaults.entrypoint;
  stack.add("the master's checkpoint_storage", node_from_json(lowest));
  stack.add("the defaults", node_from_json({{"log_policies", default_log_policies()}}));
  return stack;
}

/// Extends errors about types if layers have different kinds of value: the message then names both positions.
void name_both(const Reader& reader, const Merged& merged, std::vector<Problem>& problems) {
  for (Problem& problem : problems) {
    for (const Overruled& each : merged.overruled) {
      if (problem.code == "E-CFG-TYPE" && problem.path == each.path && each.high.kind != each.low.kind)
        problem.message += "; " + reader.place_of(each.low) + " has " + std::string(kind_name(each.low.kind));
    }
  }
}

/// Trial classes and compiled steps run with the libraries of the agent, not with those of an image.
void warn_unused_image(Reader& reader, const YamlNode& tree, const ExperimentConfig& config) {
  if (!config.trial_class() && config.compiled_step().empty()) return;
  const YamlNode* environment = tree.find("environment");
  const YamlNode* image = environment ? environment->find("image") : nullptr;
  if (!image || image->is_null()) return;
  reader.warn(*image, "environment.image", "E-CFG-CONFLICT",
              "has no effect: this entrypoint runs with the libraries of the agent; give a command as the "
              "entrypoint to run in the image");
}

}  // namespace

Result<Parsed> parse(std::string_view yaml, const std::string& file, const Defaults& defaults,
                     const std::vector<Override>& overrides, const ClusterFacts* cluster) {
  TRY_ASSIGN(YamlNode user, parse_yaml(yaml, file));
  TRY(override_tree(user, overrides));
  // An empty file is enough if a template completes it.
  if (!user.is_map() && !(user.is_null() && defaults.template_)) return not_a_map(user, file);
  TRY_ASSIGN(const Stack stack, stack_of(std::move(user), file, defaults));
  Merged merged = merge(stack.layers);
  Reader reader(stack.names);
  if (cluster != nullptr) fill_in_storage(reader, merged.tree, *cluster);
  Json resolved = top_level()(reader, merged.tree, "");
  check_limits(reader, merged.tree, stack.policies);
  if (cluster != nullptr && resolved.is_object())
    check_against(reader, merged.tree, resolved, *cluster, stack.users);
  if (!reader.ok()) {
    std::vector<Problem> problems = reader.take_problems();
    name_both(reader, merged, problems);
    return fail(std::move(problems));
  }
  report_overruled(reader, merged, stack.policy_sources, "experiment");
  // Defaults and limits apply to a valid configuration only.
  apply_defaults(resolved, merged.tree, defaults);
  apply_limits(resolved, merged.tree, stack.policies);
  ExperimentConfig config = load(std::move(resolved));
  warn_unused_image(reader, merged.tree, config);
  return Parsed{std::move(config), reader.take_warnings()};
}

Placement placement(std::string_view yaml, const std::string& file, const Defaults& defaults) {
  auto user = parse_yaml(yaml, file);
  if (!user || !user->is_map()) return {};
  const auto stack = stack_of(std::move(*user), file, defaults);
  if (!stack) return {};
  const Merged merged = merge(stack->layers);
  const auto text = [&](const char* name) {
    const YamlNode* node = merged.tree.find(name);
    return node != nullptr && node->kind == YamlNode::Kind::kString ? node->text : std::string();
  };
  return {.workspace = text("workspace"), .project = text("project")};
}

Result<ExperimentConfig> from_resolved(const nlohmann::ordered_json& resolved) {
  Reader reader("");
  Json again = top_level()(reader, node_from_json(resolved), "");
  if (reader.ok()) return load(std::move(again));
  // An old configuration may violate a check added since; it ran before and must keep running.
  std::vector<Problem> problems = reader.take_problems();
  const bool conflicts = std::all_of(problems.begin(), problems.end(),
                                     [](const Problem& problem) { return problem.code == "E-CFG-CONFLICT"; });
  if (conflicts) return load(resolved);
  return fail(std::move(problems));
}

Result<std::vector<Problem>> check_part(std::string_view yaml, const std::string& file) {
  TRY_ASSIGN(YamlNode root, parse_yaml(yaml, file));
  if (root.is_null()) return std::vector<Problem>();
  if (!root.is_map()) return not_a_map(root, file);
  Reader command(file);
  command.expect_part();
  command_type()(command, root, "");
  Reader reader(file);
  reader.expect_part();
  // Commands share templates with experiments.
  if (const auto slots = take_command_slots(root))
    whole(0, kMaxCommandSlots)(reader, *slots, "resources.slots");
  top_level()(reader, root, "");
  if (reader.ok()) return reader.take_warnings();
  if (command.ok()) return command.take_warnings();
  return fail(reader.take_problems());
}

}  // namespace det::expconf
