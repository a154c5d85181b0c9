#include "common/expconf/command.h"

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/expconf/layers.h"
#include "common/expconf/node.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

/// Reads an argument vector. A single string, alone or in a list, becomes `/bin/sh -c STRING`, as in
/// Determined AI. Resolved: the vector.
Json read_command_line(Reader& reader, const YamlNode& node, const std::string& path) {
  constexpr TextRules kLine{.min = 0, .max = 131072, .one_line = false};
  Json words;
  if (node.is_list()) {
    words = list_of(text(kLine), 1, 10'000)(reader, node, path);
    if (words.size() == 1) words = Json::array({"/bin/sh", "-c", words[0]});
  } else if (node.kind == YamlNode::Kind::kString) {
    words = Json::array({"/bin/sh", "-c", text(kLine)(reader, node, path)});
  } else {
    return wrong_type(reader, node, path, "a command line or a list of strings");
  }
  // For a shell command, the first two words are fixed: the blank check applies to the third.
  const bool shell = !node.is_list() || node.items.size() == 1;
  const Json& first = shell ? words[2] : words[0];
  if (!first.is_string() || !trim(first.get_ref<const std::string&>()).empty()) return words;
  reader.problem(node, path, "E-CFG-RANGE", "must not be blank");
  return nullptr;
}

Type command_resources_type() {
  constexpr std::int64_t kMaxSlots = 100'000;
  return table({defaulted("slots", whole(0, kMaxSlots), 1, "slots of the command, on one agent; 0: none"),
                defaulted("resource_pool", text({.max = 128}), "",
                          "resource pool; empty: the default pool of the cluster"),
                defaulted("priority", whole(1, 99), 42, "queue priority; smaller values go first"),
                defaulted("weight", real(0, false), 1, "weight in fair-share pools"),
                idle("max_slots", whole(0, kMaxSlots)),
                optional("shm_size", size_in_bytes(), "size of /dev/shm in the sandbox of the command"),
                idle("is_single_node", boolean()), idle("devices", any()), idle("native_parallel", boolean()),
                idle("agent_label", text())});
}

CommandConfig load_command(Json resolved) {
  CommandConfig config;
  const Json& resources = resolved.at("resources");
  config.description = resolved.at("description").get<std::string>();
  config.entrypoint = resolved.at("entrypoint").get<std::vector<std::string>>();
  config.slots = resources.at("slots").get<int>();
  config.resource_pool = resources.at("resource_pool").get<std::string>();
  config.priority = resources.at("priority").get<int>();
  config.weight = resources.at("weight").get<double>();
  const Json& variables = resolved.at("environment").at("environment_variables");
  // cuda's value wins where both devices set a variable.
  for (const char* device : {"cpu", "cuda"}) {
    for (const Json& assignment : variables.at(device)) {
      const auto& pair = assignment.get_ref<const std::string&>();
      const std::size_t equals = pair.find('=');
      config.environment_variables[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
  }
  config.resolved = std::move(resolved);
  return config;
}

/// The parts of task_container_defaults that commands have too.
Json shared_defaults(const nlohmann::ordered_json& defaults) {
  Json shared = Json::object();
  for (const char* name : {"environment", "bind_mounts"}) {
    if (defaults.is_object() && defaults.contains(name)) shared[name] = defaults.at(name);
  }
  if (defaults.is_object() && defaults.contains("resources") && defaults.at("resources").contains("shm_size"))
    shared["resources"]["shm_size"] = defaults.at("resources").at("shm_size");
  return shared;
}

}  // namespace

const Type& command_type() {
  static const Type type = table(
      {defaulted("description", text({.max = 4096, .one_line = false}), "", "description of the experiment"),
       // As in Determined AI, a command without one does nothing.
       defaulted("entrypoint", {"command line, or list of string", read_command_line},
                 Json::array({"/bin/sh", "-c", "true"}), "command line to run"),
       section("resources", command_resources_type(), "resources of the command"),
       section("environment", environment_type(), "environment of the command's processes"),
       defaulted("bind_mounts", bind_mounts_type(), Json::array(), "directories of the agent to mount"),
       optional("work_dir", text({.min = 1}),
                "working directory; default: the directory of the uploaded files"),
       defaulted("debug", boolean(), false, kIdle), idle("notebook_idle_type", text()),
       idle("idle_timeout", any()), idle("tensorboard_args", any()), idle("slurm", any()), idle("pbs", any()),
       optional("agent_user_group", any(), "set by the cluster: user and group of the task"),
       optional("event_files", any(), "set by the cluster for a TensorBoard"), idle("log_policies", any()),
       idle("preemption_timeout", any())});
  return type;
}

Result<ParsedCommand> parse_command(std::string_view yaml, const std::string& file, const Defaults& defaults,
                                    const ClusterFacts* cluster) {
  std::vector<std::string> names{file};
  std::vector<YamlNode> layers;
  std::vector<int> users{0};
  const auto add = [&](const std::string& name, YamlNode tree) {
    set_source(tree, static_cast<int>(names.size()));
    names.push_back(name);
    layers.push_back(std::move(tree));
  };
  // Source 0 is the user's file, later sources are numbered in order of `names`.
  TRY_ASSIGN(YamlNode user, parse_yaml(yaml, file));
  if (user.is_null()) user.kind = YamlNode::Kind::kMap;
  Policies limits;
  std::vector<int> policy_sources;
  for (const Document& each : defaults.policies) {
    TRY_ASSIGN(Policies policies, read_policies(each.text, each.name, Workload::kTask));
    limits.workload = Workload::kTask;
    tighten(limits, policies);
    policy_sources.push_back(static_cast<int>(names.size()));
    add(each.name, std::move(policies.invariants));
  }
  layers.push_back(std::move(user));
  if (defaults.template_) {
    // Templates are written by users, so the checks for users apply to them.
    TRY_ASSIGN(YamlNode tree, parse_yaml(defaults.template_->text, defaults.template_->name));
    users.push_back(static_cast<int>(names.size()));
    add(defaults.template_->name, std::move(tree));
  }
  if (const Json* pool = find_pool_defaults(defaults, layers))
    add(kPoolDefaults, node_from_json(shared_defaults(*pool)));
  add("the master's task_container_defaults",
      node_from_json(shared_defaults(defaults.task_container_defaults)));
  // merge() needs maps at the top; everything else is checked on the merged tree.
  Reader reader(names);
  for (const YamlNode& layer : layers) {
    if (!layer.is_null() && !layer.is_map()) wrong_type(reader, layer, "", "a map");
  }
  if (!reader.ok()) return fail(reader.take_problems());
  const Merged merged = merge(layers);
  Json resolved = command_type()(reader, merged.tree, "");
  check_limits(reader, merged.tree, limits);
  if (cluster != nullptr && resolved.is_object())
    check_against(reader, merged.tree, resolved, *cluster, users, "resources.slots");
  if (!reader.ok()) return fail(reader.take_problems());
  report_overruled(reader, merged, policy_sources, "task");
  apply_limits(resolved, merged.tree, limits);
  return ParsedCommand{load_command(std::move(resolved)), reader.take_warnings()};
}

Result<CommandConfig> command_from_resolved(const nlohmann::ordered_json& resolved) {
  // Reading a resolved value again fills in defaults of fields that were added since.
  Reader reader("");
  Json again = command_type()(reader, node_from_json(resolved), "");
  if (!reader.ok()) return fail(reader.take_problems());
  return load_command(std::move(again));
}

}  // namespace det::expconf
