// Conversion of JSON to the YAML tree that the sections read. Stored configurations and the master's defaults
// thereby pass the same checks as a user's file.
#pragma once

#include "common/base/json.h"
#include "common/yaml/yaml.h"

namespace det::expconf {

/// Returns the tree of a value, with every node at the given position. Line 0 means no position.
YamlNode node_from_json(const Json& value, int line = 0, int column = 0);
/// Sets the position of every node of the tree.
void place(YamlNode& node, int line, int column);
/// Sets the source (index of the document) of every node of the tree.
void set_source(YamlNode& node, int source);

}  // namespace det::expconf
