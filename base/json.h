// Owns reading JSON that a stranger wrote, and writing JSON whose doubles come back bit for bit.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace det {

/// Objects keep the order in which their keys were written.
using Json = nlohmann::ordered_json;

struct JsonLimits {
  std::size_t bytes = 1024 * 1024;
  int depth = 32;
};

/// Strict RFC 8259: no comments, no trailing text, valid UTF-8, no key twice. kInvalidArgument otherwise,
/// with line and column.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

/// Shortest digits that read back as the same double; NaN and infinities become "NaN", "Infinity",
/// "-Infinity". Ill-formed UTF-8 is replaced. `indent` < 0 is one line.
std::string dump_json(const Json& value, int indent = -1);

/// A JSON number, or the string "NaN", "Infinity", "-Infinity".
Json json_double(double value);
/// The double behind json_double; nothing when the value is neither a number nor one of the three strings.
std::optional<double> read_double(const Json& value);

/// Sets `value` at "a.b.c", making maps on the way. Fails when the path is empty, has an empty part or
/// crosses what is no map.
Status set_path(Json& root, std::string_view path, Json value);
/// The value at "a.b.c"; null when absent.
const Json* find_path(const Json& root, std::string_view path);

}  // namespace det
