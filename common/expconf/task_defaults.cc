// `task_container_defaults` of the master and of pools: mapping of their keys to fields of a configuration.
#include <algorithm>
#include <array>

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/expconf/node.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

constexpr const char* kHere = "task_container_defaults";
/// Has no field of a configuration: it belongs to the pool, not to the task.
constexpr const char* kStartupHook = "startup_hook";

/// A key and the path of its configuration field.
struct Key {
  std::string name;
  std::string field;  ///< "": accepted but ignored in this release
};
const std::vector<Key>& keys() {
  static const std::vector<Key> all{{"image", "environment.image"},
                                    {"environment_variables", "environment.environment_variables"},
                                    {"force_pull_image", "environment.force_pull_image"},
                                    {"registry_auth", "environment.registry_auth"},
                                    {"add_capabilities", "environment.add_capabilities"},
                                    {"drop_capabilities", "environment.drop_capabilities"},
                                    {"devices", "resources.devices"},
                                    {"shm_size_bytes", "resources.shm_size"},
                                    {"bind_mounts", "bind_mounts"},
                                    {"log_policies", "log_policies"},
                                    {"preemption_timeout", "preemption_timeout"},
                                    {"slurm", "slurm"},
                                    {"pbs", "pbs"},
                                    {"network_mode", ""},
                                    {"dtrain_network_interface", ""},
                                    {"nccl_port_range", ""},
                                    {"gloo_port_range", ""},
                                    {"work_dir", ""},
                                    {"cpu_pod_spec", ""},
                                    {"gpu_pod_spec", ""}};
  return all;
}

/// Returns the member `key`, created if absent, with the position of `like`.
YamlNode& child_of(YamlNode& map, const std::string& key, const YamlNode& like) {
  map.kind = YamlNode::Kind::kMap;
  for (YamlEntry& entry : map.entries) {
    if (entry.key == key) return entry.value;
  }
  map.entries.push_back({key, like.line, like.column, {}});
  return map.entries.back().value;
}

/// Maps a path back for messages: "environment.image.cpu" → "task_container_defaults.image.cpu".
std::string path_here(const std::string& path) {
  for (const Key& key : keys()) {
    if (!key.field.empty() && path.starts_with(key.field))
      return child(kHere, key.name) + path.substr(key.field.size());
  }
  return child(kHere, path);
}

}  // namespace

const Json* find_pool_defaults(const Defaults& defaults, const std::vector<YamlNode>& layers) {
  std::string pool = defaults.default_pool;
  for (const YamlNode& layer : layers) {
    const YamlNode* resources = layer.find("resources");
    const YamlNode* named = resources ? resources->find("resource_pool") : nullptr;
    if (!named || named->is_null()) continue;
    // An empty name selects the default pool.
    if (!named->text.empty()) pool = named->text;
    break;
  }
  const auto found = defaults.pool_task_defaults.find(pool);
  return found == defaults.pool_task_defaults.end() ? nullptr : &found->second.config;
}

Result<TaskDefaults> read_task_defaults(const YamlNode& tree) {
  std::vector<std::string> names{kStartupHook};
  for (const Key& key : keys()) names.push_back(key.name);
  YamlNode config{.kind = YamlNode::Kind::kMap};
  // Partial: the defaults alone are no complete configuration.
  Reader reader("");
  reader.expect_part();
  if (!tree.is_map()) wrong_type(reader, tree, "", "a map");
  std::string startup_hook;
  for (const YamlEntry& entry : tree.entries) {
    if (entry.key == kStartupHook && !entry.value.is_null()) {
      const Json hook = text({.max = 65536, .one_line = false})(reader, entry.value, entry.key);
      if (hook.is_string()) startup_hook = hook.get<std::string>();
    }
    if (entry.key == kStartupHook) continue;
    const auto key =
        std::find_if(keys().begin(), keys().end(), [&](const Key& each) { return each.name == entry.key; });
    if (key == keys().end()) {
      reader.problem(entry, entry.key, "E-CFG-UNKNOWN", "unknown field" + did_you_mean(entry.key, names));
    } else if (key->field.empty()) {
      reader.warn(entry.value, entry.key, "E-CFG-REMOVED", "has no effect in this release");
    } else {
      YamlNode* at = &config;
      for (const std::string& part : split(key->field, '.')) at = &child_of(*at, part, entry.value);
      *at = entry.value;
    }
  }
  top_level()(reader, config, "");
  std::vector<Problem> problems = reader.take_problems();
  // The problems carry configuration paths, but the administrator wrote task_container_defaults.
  for (Problem& problem : problems) problem.path = path_here(problem.path);
  if (!problems.empty()) return fail(std::move(problems));
  TaskDefaults result{to_json(config), startup_hook, reader.take_warnings()};
  for (Problem& warning : result.warnings) warning.path = path_here(warning.path);
  return result;
}

}  // namespace det::expconf
