// Merge of configuration layers. Contains the rules for fields that are sets, alternatives or indivisible;
// performs no checks. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/yaml/yaml.h"

namespace det::expconf {

/// A value of a lower layer that a higher layer replaced.
struct Overruled {
  /// Dotted path of the field.
  std::string path;
  YamlNode high, low;
};

/// Result of merge().
struct Merged {
  /// Every node keeps its position and source.
  YamlNode tree;
  std::vector<Overruled> overruled;
};

/// Merges `layers`, highest precedence first; a null tree is an empty layer. Rules:
///
///   scalars, plain lists     the highest layer that sets them wins
///   maps                     union
///   bind_mounts, resources.devices
///                            sets, keyed by container_path
///   environment variables    a set for each device, keyed by name
///   log_policies             a set, keyed by name, else by action and pattern
///   arguments of slurm, pbs  concatenated, lower layer first
///   searchers, storages      only the common fields merge if the kinds differ
///   hyperparameter, length, registry_auth
///                            indivisible: the highest layer wins
///   fields with two spellings (max_steps and max_length, …)
///                            the higher layer hides the other spelling in lower layers
Merged merge(const std::vector<YamlNode>& layers);

}  // namespace det::expconf
