// Fuzz targets for untrusted files. A target returns if all its checks hold; otherwise it prints a line to
// standard error and aborts.
#pragma once

#include <string_view>

namespace det::fuzz {

/// Parses `text` as a YAML configuration. Checks bounded work, positions inside the text, and the round trip
/// through to_yaml.
void yaml(std::string_view text);

/// Reads `bytes` as a model archive. Checks that the three readers agree, that only safe paths are returned,
/// and that the entries survive packing and reading.
void archive(std::string_view bytes);

}  // namespace det::fuzz
