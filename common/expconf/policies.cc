#include "common/expconf/policies.h"

#include <algorithm>
#include <functional>

#include "common/expconf/node.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

/// Schema of a policy document. Invariants are a partial configuration of the workload.
Type policies_type(Workload workload) {
  const Type resources =
      table({optional("max_slots", whole(0, 100'000),
                      "the most slots that an experiment's trials, or a task, hold together")});
  const Type constraints = table({optional("resources", resources, "of an experiment or task"),
                                  optional("priority_limit", whole(1, 99),
                                           "the most urgent (smallest) priority that users may ask for")});
  const Type& whole_type = workload == Workload::kTask ? command_type() : top_level();
  const Type part("map", [&whole_type](Reader& reader, const YamlNode& node, const std::string&) {
    return whole_type(reader, node, "");
  });
  return table({optional("invariant_config", part, "goes over every user's configuration"),
                optional("constraints", constraints, "how far users may go")});
}

/// Returns the integer at `path` with its position. Other values are left to the schema check.
std::optional<Limit> limit_at(const Reader& reader, const YamlNode& root,
                              std::initializer_list<const char*> path) {
  const YamlNode* node = &root;
  for (const char* name : path) {
    node = node->find(name);
    if (node == nullptr) return std::nullopt;
  }
  if (node->kind != YamlNode::Kind::kInt) return std::nullopt;
  return Limit{node->integer, reader.place_of(*node)};
}

}  // namespace

Result<Policies> read_policies(std::string_view yaml, const std::string& file, Workload workload) {
  TRY_ASSIGN(YamlNode root, parse_yaml(yaml, file));
  Reader reader(file);
  reader.expect_part();
  Policies policies{
      .workload = workload, .invariants = {}, .max_slots = {}, .priority_limit = {}, .warnings = {}};
  if (!root.is_null()) policies_type(workload)(reader, root, "");
  policies.max_slots = limit_at(reader, root, {"constraints", "resources", "max_slots"});
  policies.priority_limit = limit_at(reader, root, {"constraints", "priority_limit"});
  // Invariants must obey the constraints of their own document.
  if (const YamlNode* invariants = root.find("invariant_config")) {
    if (invariants->is_map()) check_limits(reader, *invariants, policies);
    policies.invariants = *invariants;
  }
  if (!reader.ok()) return fail(reader.take_problems());
  policies.warnings = reader.take_warnings();
  return policies;
}

// More urgent priorities are smaller, so the stricter limit is the larger number.
void tighten(Policies& policies, const Policies& others) {
  const auto stricter = [](const std::optional<Limit>& other, const std::optional<Limit>& own, auto less) {
    return other && (!own || less(other->value, own->value));
  };
  if (stricter(others.max_slots, policies.max_slots, std::less<>())) policies.max_slots = others.max_slots;
  if (stricter(others.priority_limit, policies.priority_limit, std::greater<>()))
    policies.priority_limit = others.priority_limit;
}

void report_overruled(Reader& reader, const Merged& merged, const std::vector<int>& policies,
                      const char* whom) {
  constexpr int kUser = 0;
  for (const Overruled& each : merged.overruled) {
    if (each.low.source == kUser &&
        std::find(policies.begin(), policies.end(), each.high.source) != policies.end())
      reader.warn(each.low, each.path, "E-CFG-SECURITY",
                  "is not heeded: " + reader.place_of(each.high) + " sets it for every " + whom);
  }
}

// Checks what the layers set. Defaults are clamped in apply_limits instead.
void check_limits(Reader& reader, const YamlNode& root, const Policies& policies) {
  const YamlNode* resources = root.find("resources");
  if (resources == nullptr) return;
  const auto integer = [&](const char* name) {
    const YamlNode* node = resources->find(name);
    return node != nullptr && node->kind == YamlNode::Kind::kInt ? node : nullptr;
  };
  using Names = std::vector<const char*>;
  for (const char* name :
       policies.workload == Workload::kTask ? Names{"slots"} : Names{"slots_per_trial", "max_slots"}) {
    const YamlNode* node = integer(name);
    if (node == nullptr || !policies.max_slots || node->integer <= policies.max_slots->value) continue;
    reader.problem(*node, child("resources", name), "E-CFG-SECURITY",
                   "at most " + std::to_string(policies.max_slots->value) + ", got " + node->text +
                       "; the limit max_slots is set by " + policies.max_slots->set_by);
  }
  const YamlNode* priority = integer("priority");
  if (priority == nullptr || !policies.priority_limit || priority->integer >= policies.priority_limit->value)
    return;
  reader.problem(*priority, "resources.priority", "E-CFG-SECURITY",
                 "at least " + std::to_string(policies.priority_limit->value) +
                     " (smaller goes first), got " + priority->text + "; priority_limit is set by " +
                     policies.priority_limit->set_by);
}

void apply_limits(Json& resolved, const YamlNode& root, const Policies& policies) {
  const YamlNode* given = root.find("resources");
  const auto silent = [&](const char* name) { return given == nullptr || is_silent(*given, name); };
  Json& resources = resolved["resources"];
  if (!resources.is_object()) return;
  if (policies.workload == Workload::kTask) {
    if (policies.max_slots && silent("slots") && resources["slots"] > policies.max_slots->value)
      resources["slots"] = policies.max_slots->value;
  } else if (policies.max_slots && silent("max_slots")) {
    resources["max_slots"] = policies.max_slots->value;
  }
  if (policies.priority_limit && silent("priority") && resources["priority"] < policies.priority_limit->value)
    resources["priority"] = policies.priority_limit->value;
}

}  // namespace det::expconf
