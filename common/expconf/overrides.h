// `--config path.to.key=value`: command-line assignments applied to a configuration tree.
#pragma once

#include "common/expconf/parse.h"
#include "common/yaml/yaml.h"

namespace det::expconf {

/// Applies the assignments in order and creates missing maps. New nodes have line 0. Errors: kInvalidArgument
/// with one problem for each bad assignment, in the file "command line".
Status override_tree(YamlNode& root, const std::vector<Override>& overrides);

}  // namespace det::expconf
