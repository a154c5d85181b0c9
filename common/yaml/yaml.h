// YAML for untrusted input: builds a tree with source positions from yaml-cpp's event stream (never
// YAML::Load) and enforces its limits while parsing. Scalars follow YAML 1.2's core schema: `yes` and `on`
// are strings.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace det {

/// Bounds on a document. The defaults are the limits that the product documents for configurations.
struct YamlLimits {
  std::size_t bytes = 256 * 1024;
  int depth = 32;      ///< nesting of lists and maps
  int nodes = 20'000;  ///< counted after alias expansion
  int aliases = 64;    ///< uses of anchors
};

struct YamlEntry;

/// A node and everything below it. Aliases are expanded by copy.
struct YamlNode {
  enum class Kind { kNull, kBool, kInt, kDouble, kString, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0, column = 0;  ///< start of the node, from 1
  std::string text;          ///< a scalar as written
  bool quoted = false;       ///< a quoted or block scalar: always a string
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;  ///< also set for kInt
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;  ///< in source order; keys are unique
  int source = 0;                  ///< index of the document, if several were merged into this tree

  bool is_map() const { return kind == Kind::kMap; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_null() const { return kind == Kind::kNull; }
  /// Returns the value of a key; null if it is absent or this is not a map.
  const YamlNode* find(std::string_view key) const;
};

/// A key of a map and its value.
struct YamlEntry {
  std::string key;
  int line = 0, column = 0;  ///< start of the key
  YamlNode value;
};

/// Returns "a map", "a string", ... for error messages.
std::string_view kind_name(YamlNode::Kind kind);

/// Parses one document; an empty one is a null node. `file` is the name in problems.
/// Errors: kInvalidArgument with problems:
///    E-YAML-SYNTAX    syntax, tags outside the core schema, merge keys
///    E-YAML-LIMIT     size, depth or nodes above `limits`
///    E-YAML-DUP       a key that is set twice
///    E-YAML-ALIAS     too many aliases, or too large after expansion
///    E-YAML-ENCODING  not UTF-8, byte order mark, control characters
///    E-YAML-MULTI     more than one document
///    E-CFG-TYPE       a key that is null, a list or a map
Result<YamlNode> parse_yaml(std::string_view text, const std::string& file, const YamlLimits& limits = {});

/// Converts a tree to JSON in key order. .inf and .nan become the strings "Infinity", "-Infinity" and "NaN".
nlohmann::ordered_json to_json(const YamlNode& node);
/// Formats JSON as block-style YAML. Strings are quoted only if YAML would read them as something else.
std::string to_yaml(const nlohmann::ordered_json& value);

}  // namespace det
