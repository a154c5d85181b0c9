// Owns reading YAML that a stranger wrote: yaml-cpp's event stream (never YAML::Load) into a tree with
// positions, bounded while it is read, so that no document costs more than its limits. Scalars are typed by
// YAML 1.2's core schema: `yes`/`on` are strings, `017` is refused as ambiguous by who wants a number.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace det {

/// Defaults are those of the product's limits (promises §5).
struct YamlLimits {
  std::size_t bytes = 256 * 1024;
  int depth = 32;
  int nodes = 20'000;  ///< counted after aliases are expanded
  int aliases = 64;
};

struct YamlEntry;

/// One node; the tree owns everything below it. Aliases are expanded by copy.
struct YamlNode {
  enum class Kind { kNull, kBool, kInt, kDouble, kString, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0, column = 0;  ///< from 1, where the node starts
  std::string text;          ///< a scalar as it was written
  bool quoted = false;       ///< a scalar in quotes or a block: always a string
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;  ///< also set for kInt
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;  ///< in the order written; keys are unique
  int source = 0;                  ///< of several documents that were put together: which one it is from

  bool is_map() const { return kind == Kind::kMap; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_null() const { return kind == Kind::kNull; }
  /// The value under `key` of a map; null when absent or when this is no map.
  const YamlNode* find(std::string_view key) const;
};

struct YamlEntry {
  std::string key;
  int line = 0, column = 0;  ///< of the key
  YamlNode value;
};

/// "a map", "a string", … for messages.
std::string_view kind_name(YamlNode::Kind kind);

/// Reads one document. Failure: kInvalidArgument with problems E-YAML-SYNTAX, -LIMIT, -DUP, -ALIAS,
/// -ENCODING, -MULTI (tags other than the core schema's and merge keys are -SYNTAX; a key that is no scalar
/// is E-CFG-TYPE). An empty document is a null node.
Result<YamlNode> parse_yaml(std::string_view text, const std::string& file, const YamlLimits& limits = {});

/// The JSON value of a tree, key order kept; .inf and .nan become the strings "Infinity", "-Infinity", "NaN".
nlohmann::ordered_json to_json(const YamlNode& node);
/// Block-style YAML of a JSON value, for people: strings are quoted only where YAML would read them
/// otherwise.
std::string to_yaml(const nlohmann::ordered_json& value);

}  // namespace det
