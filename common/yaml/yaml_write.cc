// Operations on parsed YAML trees: lookup, conversion to JSON, and block-style output.
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/yaml/yaml.h"
#include "common/yaml/yaml_scalar.h"

namespace det {
namespace {

/// Formats a scalar, or an empty list or map.
std::string scalar_text(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return needs_quotes(text) ? dump_json(value) : text;
  }
  // JSON has no literal for these values; YAML does.
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    return std::isnan(number) ? ".nan" : number > 0 ? ".inf" : "-.inf";
  }
  return dump_json(value);  // scalars, [] and {} in JSON syntax are valid YAML
}

void write(std::string& out, const Json& value, int indent);

/// Writes the value after "key:" or "-", including the newline.
void write_value(std::string& out, const Json& value, int indent) {
  if (value.is_structured() && !value.empty()) {
    out += '\n';
    write(out, value, indent);
  } else {
    out += ' ' + scalar_text(value) + '\n';
  }
}

void write(std::string& out, const Json& value, int indent) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, item] : value.items()) {
      out.append(static_cast<std::size_t>(indent), ' ');
      out += scalar_text(Json(key)) + ':';
      write_value(out, item, indent + 2);
    }
  } else if (value.is_array() && !value.empty()) {
    for (const auto& item : value) {
      out.append(static_cast<std::size_t>(indent), ' ');
      out += '-';
      if (item.is_object() && !item.empty()) {
        // The first key goes on the line of the dash, the others below it at the same indentation.
        std::string nested;
        write(nested, item, indent + 2);
        out += ' ' + nested.substr(static_cast<std::size_t>(indent) + 2);
      } else {
        write_value(out, item, indent + 2);
      }
    }
  } else {
    out += scalar_text(value) + '\n';
  }
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string_view kind_name(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kBool:
      return "true or false";
    case YamlNode::Kind::kInt:
      return "an integer";
    case YamlNode::Kind::kDouble:
      return "a number";
    case YamlNode::Kind::kString:
      return "a string";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
  }
  return "nothing";
}

nlohmann::ordered_json to_json(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return nullptr;
    case YamlNode::Kind::kBool:
      return node.boolean;
    case YamlNode::Kind::kInt:
      return node.integer;
    case YamlNode::Kind::kDouble:
      return json_double(node.number);
    case YamlNode::Kind::kString:
      return node.text;
    case YamlNode::Kind::kList: {
      Json list = Json::array();
      for (const YamlNode& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case YamlNode::Kind::kMap: {
      Json map = Json::object();
      for (const YamlEntry& entry : node.entries) map.push_back({entry.key, to_json(entry.value)});
      return map;
    }
  }
  return nullptr;
}

std::string to_yaml(const nlohmann::ordered_json& value) {
  std::string out;
  write(out, value, 0);
  return out;
}

}  // namespace det
