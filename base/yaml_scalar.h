// Owns how a plain YAML scalar is typed: YAML 1.2's core schema. Private to base/.
#pragma once

#include <string_view>

#include "base/yaml.h"

namespace det {

/// Sets kind, boolean, integer and number from node.text as a plain (unquoted) scalar. An integer beyond 64
/// bits is a double; a double beyond range is an infinity.
void type_plain_scalar(YamlNode& node);

/// True when `text` written plainly would not be read back as this very string, by YAML 1.2 or 1.1.
bool needs_quotes(std::string_view text);

}  // namespace det
