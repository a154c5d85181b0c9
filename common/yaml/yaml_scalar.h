// Types of plain YAML scalars by YAML 1.2's core schema. Pure. Private to common/yaml/.
#pragma once

#include <string_view>

#include "common/yaml/yaml.h"

namespace det {

/// Sets kind, boolean, integer and number from node.text, read as a plain (unquoted) scalar. An integer
/// beyond 64 bits becomes a double; a double out of range becomes an infinity.
void type_plain_scalar(YamlNode& node);

/// True if YAML 1.1 or 1.2 would read the unquoted `text` as anything but this string. `text` may be empty.
bool needs_quotes(std::string_view text);

}  // namespace det
