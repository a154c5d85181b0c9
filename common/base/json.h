// JSON for untrusted input, and lossless output of doubles. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace det {

/// A JSON value. Objects keep the insertion order of their keys.
using Json = nlohmann::ordered_json;

/// Bounds on a document.
struct JsonLimits {
  std::size_t bytes = 1024 * 1024;  ///< size of the text
  int depth = 32;                   ///< nesting of arrays and objects
};

/// Returns whether arrays and objects are nested deeper than `limit`, without recursion. Untrusted text is
/// checked before any parser or destructor recurses into it.
bool nested_deeper(std::string_view text, int limit);

/// Parses strict RFC 8259: no comments, no trailing text, valid UTF-8, unique keys in an object.
/// Errors: kInvalidArgument (syntax errors with line and column).
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

/// Serializes with the shortest digits that parse back to the same double. NaN and infinities become the
/// strings "NaN", "Infinity" and "-Infinity". Ill-formed UTF-8 is replaced by U+FFFD. `indent` < 0 gives a
/// single line.
std::string dump_json(const Json& value, int indent = -1);

/// Returns a JSON number, or the string "NaN", "Infinity" or "-Infinity".
Json json_double(double value);
/// Inverse of json_double. Returns nothing if the value is neither a number nor one of the three strings.
std::optional<double> read_double(const Json& value);

/// Sets `value` at "a.b.c" and creates intermediate maps.
/// Errors: kInvalidArgument (empty path or part, or the path crosses a value that is not a map).
Status set_path(Json& root, std::string_view path, Json value);
/// Returns the value at "a.b.c"; null if absent.
const Json* find_path(const Json& root, std::string_view path);

}  // namespace det
