#include "common/expconf/node.h"

#include <nlohmann/json.hpp>

namespace det::expconf {

YamlNode node_from_json(const Json& value, int line, int column) {
  using Kind = YamlNode::Kind;
  YamlNode node;
  node.line = line;
  node.column = column;
  if (value.is_object()) {
    node.kind = Kind::kMap;
    for (const auto& [key, item] : value.items())
      node.entries.push_back({key, line, column, node_from_json(item, line, column)});
    return node;
  }
  if (value.is_array()) {
    node.kind = Kind::kList;
    for (const auto& item : value) node.items.push_back(node_from_json(item, line, column));
    return node;
  }
  if (value.is_string()) {
    node.kind = Kind::kString;
    node.text = value.get<std::string>();
    // Quoted, so that a string such as "true" stays a string.
    node.quoted = true;
    return node;
  }
  // The text of numbers appears in messages.
  node.text = dump_json(value);
  // Unsigned values above 2^63 - 1 become doubles, as in the YAML parser.
  if (value.is_boolean()) {
    node.kind = Kind::kBool;
    node.boolean = value.get<bool>();
  } else if (value.is_number_integer() &&
             !(value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 != 0)) {
    node.kind = Kind::kInt;
    node.integer = value.get<std::int64_t>();
    node.number = static_cast<double>(node.integer);
  } else if (value.is_number()) {
    node.kind = Kind::kDouble;
    node.number = value.get<double>();
  }
  return node;
}

void place(YamlNode& node, int line, int column) {
  node.line = line;
  node.column = column;
  for (YamlNode& item : node.items) place(item, line, column);
  for (YamlEntry& entry : node.entries) {
    entry.line = line;
    entry.column = column;
    place(entry.value, line, column);
  }
}

void set_source(YamlNode& node, int source) {
  node.source = source;
  for (YamlNode& item : node.items) set_source(item, source);
  for (YamlEntry& entry : node.entries) set_source(entry.value, source);
}

}  // namespace det::expconf
