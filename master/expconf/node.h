// Owns the way from JSON back to the tree the sections read, so that a stored configuration and the master's
// defaults pass the same checks as a user's file.
#pragma once

#include "base/json.h"
#include "base/yaml.h"

namespace det::expconf {

/// The tree of a value; every node stands at the given place.
YamlNode node_from_json(const Json& value, int line = 0, int column = 0);
/// Moves the whole tree to one place.
void place(YamlNode& node, int line, int column);
/// Says of the whole tree which document it is from.
void set_source(YamlNode& node, int source);

}  // namespace det::expconf
