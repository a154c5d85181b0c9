// Owns `--config path.to.key=value`: assignments of the command line put into a configuration's tree.
#pragma once

#include "base/yaml.h"
#include "master/expconf/parse.h"

namespace det::expconf {

/// Sets each assignment in turn, making maps on the way; what it adds stands at line 0. Problems carry the
/// file "command line".
Status override_tree(YamlNode& root, const std::vector<Override>& overrides);

}  // namespace det::expconf
