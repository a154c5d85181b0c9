// Owns the merge of configurations (determined-0.38 §1.1): what each layer says where those above it are
// silent. Knows which fields are sets, which are alternatives and which are taken whole; checks nothing.
#pragma once

#include <string>
#include <vector>

#include "base/yaml.h"

namespace det::expconf {

/// A value that a lower layer gave and a higher one replaced.
struct Overruled {
  std::string path;
  YamlNode high, low;
};

struct Merged {
  YamlNode tree;  ///< every node keeps its own place and source
  std::vector<Overruled> overruled;
};

/// `layers`: the highest first; a null tree says nothing. Scalars and plain lists: the first that is set.
/// Maps: the union. By rule: bind_mounts and resources.devices are sets by container_path, environment
/// variables by name (for each device), log_policies by name; slurm's and pbs's arguments begin with the
/// lower layer's; of searchers and storages of different kinds only the common fields merge; a
/// hyperparameter, a length and registry_auth are taken whole; of two fields that say the same (max_steps and
/// max_length, …) a higher one silences the lower.
Merged merge(const std::vector<YamlNode>& layers);

}  // namespace det::expconf
