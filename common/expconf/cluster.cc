// Checks of a configuration against the facts of the cluster.
#include "common/expconf/cluster.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "common/base/text.h"
#include "common/expconf/node.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

/// A configuration under test: the tree gives positions, the resolved JSON gives values.
struct Subject {
  Reader& reader;
  const YamlNode& root;
  const Json& resolved;
  const std::vector<int>& users;
  const std::string& slots;  ///< path of the field with the number of slots

  /// Returns the node at `path`, or the nearest enclosing map that exists.
  const YamlNode& at(const std::string& path) const {
    const YamlNode* node = &root;
    for (const std::string& part : split(path, '.')) {
      const YamlNode* next = node->find(part);
      if (next == nullptr) break;
      node = next;
    }
    return *node;
  }
  Json value(const std::string& path) const {
    const Json* found = find_path(resolved, path);
    return found == nullptr ? Json() : *found;
  }
  void problem(const std::string& path, const char* code, const std::string& message) const {
    reader.problem(at(path), path, code, message);
  }
};

void check_pool(const Subject& subject, const ClusterFacts& cluster) {
  const Json wanted = subject.value("resources.resource_pool");
  if (cluster.pools.empty() || !wanted.is_string()) return;
  const auto& given = wanted.get_ref<const std::string&>();
  // An empty name selects the default pool.
  const std::string& pool = given.empty() ? cluster.default_pool : given;
  if (std::find(cluster.pools.begin(), cluster.pools.end(), pool) == cluster.pools.end()) {
    subject.problem("resources.resource_pool", "E-CFG-REF",
                    "there is no pool \"" + given + "\"; pools: " + join(cluster.pools, ", ") +
                        did_you_mean(given, cluster.pools));
    return;
  }
  const Json slots = subject.value(subject.slots);
  if (!slots.is_number_integer() || !cluster.unfit ||
      slots.get<std::int64_t>() > std::numeric_limits<int>::max())
    return;
  const std::string why = cluster.unfit(
      pool, slots.get<int>(),
      subject.slots == "resources.slots" || subject.value("resources.is_single_node") == Json(true));
  if (why.empty()) return;
  // As in Determined AI, a command never waits for slots that its own configuration names. A template may be
  // made for a cluster with more agents.
  const bool of_command = subject.slots == "resources.slots" && subject.at(subject.slots).source == 0;
  if (cluster.launch_error || of_command) {
    // Clients of Determined AI look for the last two words.
    subject.problem(subject.slots, "E-CFG-UNSAT", why + "; request unfulfillable");
  } else {
    subject.reader.warn(subject.at(subject.slots), subject.slots, "E-CFG-UNSAT",
                        why + "; it waits until there is one");
  }
}

void check_project(const Subject& subject, const ClusterFacts& cluster) {
  const std::string workspace = subject.value("workspace").is_string() ? subject.value("workspace") : "";
  const std::string project = subject.value("project").is_string() ? subject.value("project") : "";
  if (workspace.empty() || project.empty()) return;
  // The message must not reveal whether a project exists that the user may not see.
  if (cluster.has_project && !cluster.has_project(workspace, project))
    subject.problem("project", "E-CFG-REF",
                    "no project \"" + project + "\" in a workspace \"" + workspace + "\" is open to you");
}

void check_source(const Subject& subject, const ClusterFacts& cluster) {
  const Json trial = subject.value("searcher.source_trial_id");
  if (trial.is_number_integer() && cluster.has_trial && !cluster.has_trial(trial.get<std::int64_t>()))
    subject.problem("searcher.source_trial_id", "E-CFG-REF",
                    "no trial " + trial.dump() + " with a checkpoint is open to you");
  const Json uuid = subject.value("searcher.source_checkpoint_uuid");
  if (uuid.is_string() && cluster.has_checkpoint && !cluster.has_checkpoint(uuid.get<std::string>()))
    subject.problem("searcher.source_checkpoint_uuid", "E-CFG-REF",
                    "no checkpoint " + uuid.get<std::string>() + " is open to you");
}

/// Whether `path` is `root` or below it, lexically.
bool is_below(const std::string& path, const std::string& root) {
  const std::string below = std::filesystem::path(path)
                                .lexically_normal()
                                .lexically_relative(std::filesystem::path(root).lexically_normal())
                                .generic_string();
  return !below.empty() && below != ".." && !below.starts_with("../");
}

void check_host_path(const Subject& subject, const ClusterFacts& cluster, const YamlNode& at,
                     const std::string& path, const Json& value) {
  const auto& users = subject.users;
  if (!value.is_string() || cluster.host_paths.empty()) return;
  // Mounts from the administrator's own documents are exempt.
  if (std::find(users.begin(), users.end(), at.source) == users.end()) return;
  const auto& wanted = value.get_ref<const std::string&>();
  for (const std::string& root : cluster.host_paths) {
    if (is_below(wanted, root)) return;
  }
  subject.reader.problem(
      at, path, "E-CFG-SECURITY",
      wanted + " may not be mounted; the cluster's allowed_host_paths are " + join(cluster.host_paths, ", "));
}

void check_storage(const Subject& subject, const ClusterFacts& cluster) {
  const Json storage = subject.value("checkpoint_storage");
  // Without a type the section has a name that is not known, which is reported already.
  if (!cluster.storage_refusal || !storage.is_object() || !storage.contains("type")) return;
  const std::string why = cluster.storage_refusal(storage);
  if (why.empty()) return;
  std::string path = "checkpoint_storage";
  for (const char* field : {"host_path", "container_path", "bucket"}) {
    if (storage.contains(field)) path = child("checkpoint_storage", field);
  }
  subject.problem(path, "E-CFG-SECURITY", why);
}

void check_host_paths(const Subject& subject, const ClusterFacts& cluster) {
  const Json mounts = subject.value("bind_mounts");
  const YamlNode& nodes = subject.at("bind_mounts");
  for (std::size_t i = 0; i < mounts.size() && i < nodes.items.size(); ++i) {
    if (!mounts[i].is_object()) continue;
    check_host_path(subject, cluster, value_or_map(nodes.items[i], "host_path"),
                    child(child("bind_mounts", i), "host_path"), mounts[i].value("host_path", Json()));
  }
}

}  // namespace

void check_against(Reader& reader, const YamlNode& root, const Json& resolved, const ClusterFacts& cluster,
                   const std::vector<int>& users, const std::string& slots) {
  const Subject subject{reader, root, resolved, users, slots};
  check_pool(subject, cluster);
  check_project(subject, cluster);
  check_source(subject, cluster);
  check_storage(subject, cluster);
  check_host_paths(subject, cluster);
}

void fill_in_storage(Reader& reader, YamlNode& root, const ClusterFacts& cluster) {
  const auto section = std::find_if(root.entries.begin(), root.entries.end(), [](const YamlEntry& entry) {
    return entry.key == "checkpoint_storage" && entry.value.is_map();
  });
  if (section == root.entries.end() || !cluster.storage_section) return;
  YamlNode& storage = section->value;
  const YamlNode* found = storage.find("name");
  // The type of the section reports any other kind of value.
  if (found == nullptr || found->kind != YamlNode::Kind::kString) return;
  const YamlNode name = *found;
  const auto full = cluster.storage_section(name.text);
  if (!full) return reader.problem(name, "checkpoint_storage.name", "E-CFG-REF", full.error().message);
  for (const auto& [key, value] : full->items()) {
    const std::string path = child("checkpoint_storage", key);
    const YamlNode* given = storage.find(key);
    if (given != nullptr && !given->is_null()) {
      if (to_json(*given) != value)
        reader.problem(*given, path, "E-CFG-SECURITY",
                       "the storage \"" + name.text + "\" fixes it; leave it out");
      continue;
    }
    std::erase_if(storage.entries, [&key = key](const YamlEntry& entry) { return entry.key == key; });
    YamlNode node = node_from_json(value);
    set_source(node, name.source);
    storage.entries.push_back({key, name.line, name.column, std::move(node)});
  }
}

}  // namespace det::expconf
