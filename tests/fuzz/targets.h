// Owns what must hold for any bytes a stranger sends. A target returns when all is well and aborts, with a
// line on standard error, when not.
#pragma once

#include <string_view>

namespace det::fuzz {

/// Reads `text` as a YAML configuration: bounded work, positions inside the text, and what was read survives
/// a way through to_yaml.
void yaml(std::string_view text);

/// Reads `bytes` as a model archive: the three readers agree, only safe paths come out, and what was read can
/// be packed and read again.
void archive(std::string_view bytes);

}  // namespace det::fuzz
