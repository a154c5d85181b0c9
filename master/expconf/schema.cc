#include "master/expconf/schema.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>

#include "base/text.h"
#include "base/units.h"

namespace det::expconf {
namespace {

constexpr std::size_t kMostProblems = 20;
using Kind = YamlNode::Kind;

std::string number_text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

/// "017": an integer of YAML 1.2, an octal one of 1.1, and nobody knows which was meant.
bool ambiguous_zero(const YamlNode& node) {
  std::string_view text = node.text;
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

/// Too many digits for 64 bits: typed as a double by the YAML reader.
bool is_huge_integer(const YamlNode& node) {
  return node.kind == Kind::kDouble && !node.text.empty() &&
         node.text.find_first_not_of("0123456789", node.text[0] == '-' || node.text[0] == '+') ==
             std::string::npos;
}

bool refuse_zero(Reader& reader, const YamlNode& node, const std::string& path) {
  if (!ambiguous_zero(node)) return false;
  reader.problem(node, path, "E-CFG-TYPE",
                 "the leading zero of " + node.text + " is ambiguous; write it without");
  return true;
}

std::string range_text(std::int64_t min, std::int64_t max) {
  if (max == std::numeric_limits<std::int64_t>::max()) {
    return min == std::numeric_limits<std::int64_t>::min() ? "" : " >= " + std::to_string(min);
  }
  return " from " + std::to_string(min) + " to " + std::to_string(max);
}

}  // namespace

// ---- Reader
// --------------------------------------------------------------------------------------------------------

Problem Reader::make(int line, int column, const std::string& path, const char* code,
                     std::string text) const {
  return {code, path, std::move(text), line == 0 && !file_.empty() ? "command line" : file_, line, column};
}
void Reader::problem(int line, int column, const std::string& path, const char* code, std::string message) {
  problems_.push_back(make(line, column, path, code, std::move(message)));
}
void Reader::problem(const YamlNode& at, const std::string& path, const char* code, std::string message) {
  problem(at.line, at.column, path, code, std::move(message));
}
void Reader::warn(const YamlNode& at, const std::string& path, const char* code, std::string message) {
  warnings_.push_back(make(at.line, at.column, path, code, std::move(message)));
}

std::vector<Problem> Reader::take_problems() {
  std::stable_sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  if (problems_.size() > kMostProblems) problems_.resize(kMostProblems);
  return std::move(problems_);
}

// ---- for messages
// --------------------------------------------------------------------------------------------------

std::string child(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}
std::string child(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

std::string found(const YamlNode& node) {
  constexpr std::size_t kMost = 40;
  if (node.is_null()) return "found nothing";
  if (node.is_list() || node.is_map()) return "found " + std::string(kind_name(node.kind));
  std::string text = make_utf8(node.text.size() > kMost ? node.text.substr(0, kMost) + "..." : node.text);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  if (node.kind == Kind::kString) return "found a string \"" + text + "\"";
  return "found " + text;
}

Json wrong_type(Reader& reader, const YamlNode& node, const std::string& path, const std::string& wanted) {
  reader.problem(node, path, "E-CFG-TYPE", "must be " + wanted + ", " + found(node));
  return nullptr;
}

const YamlNode& value_or_map(const YamlNode& map, const std::string& name) {
  const YamlNode* value = map.find(name);
  return value != nullptr ? *value : map;
}

// ---- values
// --------------------------------------------------------------------------------------------------------

Type any() {
  return [](Reader&, const YamlNode& node, const std::string&) { return to_json(node); };
}

Type boolean() {
  return [](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    if (node.kind == Kind::kBool) return node.boolean;
    return wrong_type(reader, node, path, "true or false");
  };
}

Type whole(std::int64_t min, std::int64_t max) {
  return [=](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    const std::string wanted = "an integer" + range_text(min, max);
    if (node.kind == Kind::kInt && refuse_zero(reader, node, path)) return nullptr;
    if (node.kind == Kind::kInt && node.integer >= min && node.integer <= max) return node.integer;
    if (node.kind == Kind::kInt || is_huge_integer(node)) {
      reader.problem(node, path, "E-CFG-RANGE", "must be " + wanted + ", got " + node.text);
      return nullptr;
    }
    return wrong_type(reader, node, path, wanted);
  };
}

Type finite() {
  return [](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    if (node.kind != Kind::kInt && node.kind != Kind::kDouble)
      return wrong_type(reader, node, path, "a number");
    if (node.kind == Kind::kInt && refuse_zero(reader, node, path)) return nullptr;
    if (!std::isfinite(node.number)) {
      reader.problem(node, path, "E-CFG-RANGE", "must be finite, got " + node.text);
      return nullptr;
    }
    return node.kind == Kind::kInt ? Json(node.integer) : Json(node.number);
  };
}

Type real(double min, bool min_itself_allowed) {
  return [=, number = finite()](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    Json value = number(reader, node, path);
    if (value.is_null()) return value;
    if (node.number > min || (min_itself_allowed && node.number == min)) return value;
    reader.problem(node, path, "E-CFG-RANGE",
                   "must be a number " + std::string(min_itself_allowed ? ">= " : "> ") + number_text(min) +
                       ", got " + node.text);
    return nullptr;
  };
}

Type text(TextRules rules) {
  return [=](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    if (node.kind != Kind::kString) return wrong_type(reader, node, path, "a string");
    std::string why;
    if (node.text.empty() && rules.min > 0) {
      why = "must not be empty";
    } else if (node.text.size() < rules.min || node.text.size() > rules.max) {
      why = "must have " + std::to_string(rules.min) + " to " + std::to_string(rules.max) + " bytes, got " +
            std::to_string(node.text.size());
    } else if (rules.one_line && has_control_characters(node.text)) {
      why = "must be one line without control characters";
    } else if (node.text.find('\0') != std::string::npos) {
      why = "must not hold a NUL";
    }
    if (why.empty()) return node.text;
    reader.problem(node, path, "E-CFG-RANGE", why);
    return nullptr;
  };
}

Type choice(std::vector<std::string> names) {
  return [names = std::move(names)](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    if (node.kind != Kind::kString) return wrong_type(reader, node, path, "one of " + join(names, ", "));
    if (std::find(names.begin(), names.end(), node.text) != names.end()) return node.text;
    reader.problem(
        node, path, "E-CFG-ENUM",
        "must be one of " + join(names, ", ") + ", " + found(node) + did_you_mean(node.text, names));
    return nullptr;
  };
}

Type size_in_bytes() {
  return [](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    if (node.kind == Kind::kInt) return whole(0)(reader, node, path);
    if (node.kind != Kind::kString) return wrong_type(reader, node, path, "a size such as 512 MiB");
    const auto bytes = parse_bytes(node.text);
    if (bytes) return *bytes;
    reader.problem(node, path, "E-CFG-RANGE", "must be a size such as 512 MiB, " + found(node));
    return nullptr;
  };
}

Type absolute_path() {
  return [](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    Json value = text({.min = 1})(reader, node, path);
    if (value.is_null() || node.text.starts_with('/')) return value;
    reader.problem(node, path, "E-CFG-RANGE", "must be an absolute path, " + found(node));
    return nullptr;
  };
}

// ---- collections
// ---------------------------------------------------------------------------------------------------

Type list_of(Type item, std::size_t min, std::size_t max) {
  return [=, item = std::move(item)](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    if (!node.is_list()) return wrong_type(reader, node, path, "a list");
    if (node.items.size() < min) {
      reader.problem(node, path, "E-CFG-RANGE", "must not be empty");
      return nullptr;
    }
    if (node.items.size() > max) {
      reader.problem(
          node, path, "E-CFG-LIMIT",
          "must have at most " + std::to_string(max) + " items, got " + std::to_string(node.items.size()));
      return nullptr;
    }
    Json list = Json::array();
    for (std::size_t i = 0; i < node.items.size(); ++i)
      list.push_back(item(reader, node.items[i], child(path, i)));
    return list;
  };
}

Type map_of(Type value) {
  return [value = std::move(value)](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    if (!node.is_map()) return wrong_type(reader, node, path, "a map");
    Json map = Json::object();
    for (const YamlEntry& entry : node.entries)
      map[entry.key] = value(reader, entry.value, child(path, entry.key));
    return map;
  };
}

Type free_map() { return map_of(any()); }

Field required(std::string name, Type type, std::string doc) {
  return {std::move(name), std::move(type), Field::Absent::kError, nullptr, std::move(doc)};
}
Field defaulted(std::string name, Type type, Json fallback) {
  return {std::move(name), std::move(type), Field::Absent::kDefault, std::move(fallback), {}};
}
Field section(std::string name, Type type) {
  return {std::move(name), std::move(type), Field::Absent::kSection, nullptr, {}};
}
Field optional(std::string name, Type type) {
  return {std::move(name), std::move(type), Field::Absent::kOmit, nullptr, {}};
}

namespace {

void report_unknown(Reader& reader, const YamlEntry& entry, const std::string& path,
                    const std::vector<Field>& fields, const Explain& explain) {
  std::string why = explain ? explain(entry.key) : "";
  if (why.empty()) {
    std::vector<std::string> names;
    for (const Field& field : fields) names.push_back(field.name);
    why = did_you_mean(entry.key, names);
  }
  reader.problem(entry.line, entry.column, child(path, entry.key), "E-CFG-UNKNOWN", "unknown field" + why);
}

void resolve_absent(Reader& reader, const YamlNode& map, const std::string& path, const Field& field,
                    Json& resolved) {
  switch (field.absent) {
    case Field::Absent::kError:
      reader.problem(map, child(path, field.name), "E-CFG-MISSING", "is required: " + field.doc);
      resolved[field.name] = nullptr;
      break;
    case Field::Absent::kDefault:
      resolved[field.name] = field.fallback;
      break;
    case Field::Absent::kSection: {
      YamlNode empty;
      empty.kind = Kind::kMap;
      empty.line = map.line;
      empty.column = map.column;
      resolved[field.name] = field.type(reader, empty, child(path, field.name));
      break;
    }
    case Field::Absent::kOmit:
      break;
  }
}

}  // namespace

Type table(std::vector<Field> fields, Check check, Explain explain) {
  return [fields = std::move(fields), check = std::move(check), explain = std::move(explain)](
             Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    if (!node.is_map()) return wrong_type(reader, node, path, "a map");
    for (const YamlEntry& entry : node.entries) {
      const bool known = std::any_of(fields.begin(), fields.end(),
                                     [&](const Field& field) { return field.name == entry.key; });
      if (!known) report_unknown(reader, entry, path, fields, explain);
    }
    Json resolved = Json::object();
    for (const Field& field : fields) {
      const YamlNode* value = node.find(field.name);
      if (value == nullptr || value->is_null()) {
        resolve_absent(reader, node, path, field, resolved);
      } else {
        resolved[field.name] = field.type(reader, *value, child(path, field.name));
      }
    }
    if (check) check(reader, node, path, resolved);
    return resolved;
  };
}

}  // namespace det::expconf
