#include "common/expconf/layers.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/expconf/schema.h"

namespace det::expconf {
namespace {

std::string text_of(const YamlNode& map, const char* name) {
  const YamlNode* node = map.find(name);
  return node == nullptr || node->kind == YamlNode::Kind::kMap || node->kind == YamlNode::Kind::kList
             ? ""
             : node->text;
}

/// Key of mounts and devices. A device may be a string "/host:/container:mode".
std::string container_path(const YamlNode& item) {
  if (item.is_map()) return text_of(item, "container_path");
  const std::vector<std::string> parts = split(item.text, ':');
  return parts.size() > 1 ? parts[1] : item.text;
}
std::string variable_name(const YamlNode& item) { return item.text.substr(0, item.text.find('=')); }
/// Key of log policies: the name, else action and pattern.
std::string policy_name(const YamlNode& item) {
  const std::string name = text_of(item, "name");
  if (!name.empty()) return "name " + name;
  const YamlNode* action = item.find("action");
  const std::string what =
      action != nullptr && action->is_map() ? text_of(*action, "type") : text_of(item, "action");
  return what + " on " + text_of(item, "pattern");
}

using KeyOf = std::string (*)(const YamlNode&);
/// Returns the key function of a list that is a set of keyed items; null for other lists.
KeyOf set_key(const std::string& path) {
  if (path == "bind_mounts" || path == "resources.devices") return container_path;
  if (path.starts_with("environment.environment_variables")) return variable_name;
  return path == "log_policies" ? policy_name : nullptr;
}

bool is_argument_list(const std::string& path) {
  return path == "slurm.sbatch_args" || path == "pbs.pbsbatch_args";
}
bool is_per_device(const std::string& path) {
  return path == "environment.image" || path == "environment.environment_variables";
}
bool is_whole(const std::string& path) {
  return path == "min_checkpoint_period" || path == "min_validation_period" ||
         path == "searcher.max_length" || path == "environment.registry_auth";
}
/// Whether either side is a typed hyperparameter, which is indivisible. A map without `type` is a group.
bool is_hyperparameter(const std::string& path, const YamlNode& a, const YamlNode& b) {
  return path.starts_with("hyperparameters.") && (a.find("type") != nullptr || b.find("type") != nullptr);
}

/// Returns the alternative spelling of a field, of which only one may be set; null if there is none.
const std::string* other_name(const std::string& path) {
  static const std::array<std::array<std::string, 2>, 3> pairs{
      {{"searcher.max_length", "searcher.max_steps"},
       {"searcher.source_trial_id", "searcher.source_checkpoint_uuid"},
       {"scheduling_unit", "batches_per_step"}}};
  for (const auto& [one, other] : pairs) {
    if (path == one) return &other;
    if (path == other) return &one;
  }
  return nullptr;
}

/// Whether a field merges even between searchers or storages of different kinds.
bool is_common(const std::string& path) {
  static const std::set<std::string> searcher{"searcher.metric", "searcher.smaller_is_better",
                                              "searcher.source_trial_id", "searcher.source_checkpoint_uuid"};
  return searcher.contains(path) || path.starts_with("checkpoint_storage.save_");
}
/// Whether both sides name a searcher or storage, but not the same kind.
bool are_different(const std::string& path, const YamlNode& high, const YamlNode& low) {
  if (path != "searcher" && path != "checkpoint_storage") return false;
  const auto kind = [&](const YamlNode& section) {
    std::string name = text_of(section, "name");
    if (path == "searcher") return name;
    // A named storage differs from one that is described by its type.
    return name.empty() ? text_of(section, "type") : "name " + name;
  };
  const std::string one = kind(high), other = kind(low);
  return !one.empty() && !other.empty() && one != other;
}

YamlEntry* find_entry(YamlNode& map, const std::string& key) {
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&](const YamlEntry& entry) { return entry.key == key; });
  return found == map.entries.end() ? nullptr : &*found;
}

/// Whether `root` has a value at the last part of `path`.
bool says(const YamlNode& root, const std::string& path) {
  const std::vector<std::string> parts = split(path, '.');
  const YamlNode* node = root.find(parts.back());
  return node != nullptr && !node->is_null();
}

/// Expands a value for all devices to a map by device, and renames `gpu` in a map to `cuda`.
YamlNode per_device(const YamlNode& node) {
  YamlNode map = node;
  if (node.is_map()) {
    YamlEntry* old = find_entry(map, "gpu");
    if (old != nullptr && find_entry(map, "cuda") == nullptr) old->key = "cuda";
    return map;
  }
  map.kind = YamlNode::Kind::kMap;
  map.items.clear();
  for (const char* device : {"cpu", "cuda", "rocm"})
    map.entries.push_back({device, node.line, node.column, node});
  return map;
}

class Merger {
 public:
  std::vector<Overruled> overruled;

  /// Merges two trees recursively; `high` wins. Records replaced values in `overruled`.
  YamlNode merge(const YamlNode& high, const YamlNode& low, const std::string& path) {
    if (low.is_null()) return high;
    if (high.is_null()) return low;
    if (is_per_device(path) && (high.is_map() || low.is_map()))
      return merge_maps(per_device(high), per_device(low), path);
    if (high.is_list() && low.is_list()) {
      if (const KeyOf key = set_key(path)) return merge_sets(high, low, key);
      if (is_argument_list(path)) return append(low, high);
    }
    if (!high.is_map() || !low.is_map() || is_whole(path) || is_hyperparameter(path, high, low)) {
      note(high, low, path);
      return high;
    }
    return merge_maps(high, low, path);
  }

 private:
  // Equal values are no replacement worth a warning.
  void note(const YamlNode& high, const YamlNode& low, const std::string& path) {
    if (high.kind == low.kind && to_json(high) == to_json(low)) return;
    overruled.push_back({path, high, low});
  }

  YamlNode merge_maps(YamlNode high, const YamlNode& low, const std::string& path) {
    const bool different = are_different(path, high, low);
    if (low.source == 0) {
      // Missing fields are reported at the user's map, which the user can edit.
      high.line = low.line;
      high.column = low.column;
      high.source = 0;
    }
    for (const YamlEntry& entry : low.entries) {
      const std::string at = child(path, entry.key);
      const std::string* other = other_name(at);
      // A higher layer hides the other spelling, and another kind's own fields, of lower layers.
      if ((different && !is_common(at)) || (other != nullptr && says(high, *other))) {
        if (YamlEntry* mine = find_entry(high, entry.key)) note(mine->value, entry.value, at);
        continue;
      }
      YamlEntry* mine = find_entry(high, entry.key);
      if (mine == nullptr) {
        high.entries.push_back(entry);
      } else if (mine->value.is_null()) {
        // A null entry is unset: the lower layer fills it.
        *mine = entry;
      } else {
        mine->value = merge(mine->value, entry.value, at);
      }
    }
    return high;
  }

  static YamlNode merge_sets(YamlNode high, const YamlNode& low, KeyOf key) {
    std::set<std::string> names;
    for (const YamlNode& item : high.items) names.insert(key(item));
    for (const YamlNode& item : low.items) {
      if (!names.contains(key(item))) high.items.push_back(item);
    }
    return high;
  }
  static YamlNode append(const YamlNode& first, YamlNode then) {
    then.items.insert(then.items.begin(), first.items.begin(), first.items.end());
    return then;
  }
};

}  // namespace

// A fold from the highest layer down: the result so far always has precedence.
Merged merge(const std::vector<YamlNode>& layers) {
  Merger merger;
  YamlNode tree;
  for (const YamlNode& layer : layers) tree = merger.merge(tree, layer, "");
  return {std::move(tree), std::move(merger.overruled)};
}

}  // namespace det::expconf
