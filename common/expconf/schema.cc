#include "common/expconf/schema.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>

#include "common/base/text.h"
#include "common/base/units.h"

namespace det::expconf {
namespace {

constexpr std::size_t kMaxProblems = 20;

std::string number_text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

/// Whether an integer has a leading zero: "017" is decimal in YAML 1.2 and octal in YAML 1.1.
bool ambiguous_zero(const YamlNode& node) {
  std::string_view text = node.text;
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

/// Whether an integer has too many digits for 64 bits; the YAML reader types it as a double.
bool is_huge_integer(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kDouble && !node.text.empty() &&
         node.text.find_first_not_of("0123456789", node.text[0] == '-' || node.text[0] == '+') ==
             std::string::npos;
}

/// Reports an ambiguous leading zero. Returns whether it did.
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

// Reader.

const std::string& Reader::file_of(int source) const {
  const auto index = static_cast<std::size_t>(source);
  return index < files_.size() ? files_[index] : files_.front();
}

Reader::Found Reader::make(const YamlNode& at, int line, int column, const std::string& path,
                           const char* code, std::string text) const {
  // Line 0 marks a command-line override, unless the document is a stored one without a name.
  const bool commanded = line == 0 && at.source == 0 && !files_.front().empty();
  return {{code, path, std::move(text), commanded ? "command line" : file_of(at.source), line, column},
          at.source};
}
void Reader::problem(const YamlNode& at, const std::string& path, const char* code, std::string message) {
  // Fields missing from a partial document may come from another layer. Hyperparameters and list items are
  // indivisible, so they must be complete everywhere.
  const bool whole = path.starts_with("hyperparameters.") || path.find('[') != std::string::npos;
  if (partial_ && !whole && code == std::string_view("E-CFG-MISSING")) return;
  problems_.push_back(make(at, at.line, at.column, path, code, std::move(message)));
}
void Reader::problem(const YamlEntry& at, const std::string& path, const char* code, std::string message) {
  problems_.push_back(make(at.value, at.line, at.column, path, code, std::move(message)));
}
void Reader::warn(const YamlNode& at, const std::string& path, const char* code, std::string message) {
  warnings_.push_back(make(at, at.line, at.column, path, code, std::move(message)));
}

std::string Reader::place_of(const YamlNode& node) const {
  const std::string& file = file_of(node.source);
  if (node.line == 0) return node.source == 0 ? "the command line" : file;
  return file + ":" + std::to_string(node.line) + ":" + std::to_string(node.column);
}

std::vector<Problem> Reader::in_order(std::vector<Found> found) {
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(a.source, a.problem.line, a.problem.column) <
           std::tie(b.source, b.problem.line, b.problem.column);
  });
  if (found.size() > kMaxProblems) found.resize(kMaxProblems);
  std::vector<Problem> problems;
  for (Found& each : found) problems.push_back(std::move(each.problem));
  return problems;
}
std::vector<Problem> Reader::take_problems() { return in_order(std::move(problems_)); }
std::vector<Problem> Reader::take_warnings() { return in_order(std::move(warnings_)); }

Type::Type(std::string form, Read read) : Type(std::move(form), std::move(read), {}) {}
Type::Type(std::string form, Read read, std::vector<Field> fields)
    : form_(std::move(form)),
      read_(std::move(read)),
      fields_(std::make_shared<const std::vector<Field>>(std::move(fields))) {}

// Helpers of messages.

std::string child(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}
std::string child(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

std::string found(const YamlNode& node) {
  // Long values are cut and control characters replaced: the text goes to terminals.
  constexpr std::size_t kMaxShown = 40;
  if (node.is_null()) return "found nothing";
  if (node.is_list() || node.is_map()) return "found " + std::string(kind_name(node.kind));
  std::string text =
      make_utf8(node.text.size() > kMaxShown ? node.text.substr(0, kMaxShown) + "..." : node.text);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  if (node.kind == YamlNode::Kind::kString) return "found a string \"" + text + "\"";
  return "found " + text;
}

namespace {

/// Whether a value at `path` may be a secret, which messages must not show.
bool is_secret_place(const std::string& path) {
  for (const char* name : {"registry_auth", "environment_variables", "secrets", "access_key", "secret_key"})
    if (path.find(name) != std::string::npos) return true;
  return false;
}

}  // namespace

Json wrong_type(Reader& reader, const YamlNode& node, const std::string& path, const std::string& wanted) {
  reader.problem(node, path, "E-CFG-TYPE",
                 // substr(6) strips "found ".
                 "must be " + wanted + ", found " +
                     (is_secret_place(path) ? std::string(kind_name(node.kind)) : found(node).substr(6)));
  return nullptr;
}

const YamlNode& value_or_map(const YamlNode& map, const std::string& name) {
  const YamlNode* value = map.find(name);
  return value != nullptr ? *value : map;
}

bool is_silent(const YamlNode& map, const std::string& name) {
  const YamlNode* value = map.find(name);
  return value == nullptr || value->is_null();
}

// Scalar types.

Type any() {
  return {"anything", [](Reader&, const YamlNode& node, const std::string&) { return to_json(node); }};
}

Type boolean() {
  return {"true or false", [](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
            if (node.kind == YamlNode::Kind::kBool) return node.boolean;
            return wrong_type(reader, node, path, "true or false");
          }};
}

Type whole(std::int64_t min, std::int64_t max) {
  return {"integer" + range_text(min, max),
          [=](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
            const std::string wanted = "an integer" + range_text(min, max);
            if (node.kind == YamlNode::Kind::kInt && refuse_zero(reader, node, path)) return nullptr;
            if (node.kind == YamlNode::Kind::kInt && node.integer >= min && node.integer <= max)
              return node.integer;
            // A huge integer is an integer out of range, not a wrong type.
            if (node.kind == YamlNode::Kind::kInt || is_huge_integer(node)) {
              reader.problem(node, path, "E-CFG-RANGE", "must be " + wanted + ", got " + node.text);
              return nullptr;
            }
            return wrong_type(reader, node, path, wanted);
          }};
}

Type finite() {
  return {"number", [](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
            if (node.kind != YamlNode::Kind::kInt && node.kind != YamlNode::Kind::kDouble)
              return wrong_type(reader, node, path, "a number");
            if (node.kind == YamlNode::Kind::kInt && refuse_zero(reader, node, path)) return nullptr;
            if (!std::isfinite(node.number)) {
              reader.problem(node, path, "E-CFG-RANGE", "must be finite, got " + node.text);
              return nullptr;
            }
            return node.kind == YamlNode::Kind::kInt ? Json(node.integer) : Json(node.number);
          }};
}

Type real(double min, bool min_itself_allowed) {
  return {"number " + std::string(min_itself_allowed ? ">= " : "> ") + number_text(min),
          [=, number = finite()](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
            Json value = number(reader, node, path);
            if (value.is_null()) return value;
            if (node.number > min || (min_itself_allowed && node.number == min)) return value;
            reader.problem(node, path, "E-CFG-RANGE",
                           "must be a number " + std::string(min_itself_allowed ? ">= " : "> ") +
                               number_text(min) + ", got " + node.text);
            return nullptr;
          }};
}

Type text(TextRules rules) {
  return {rules.one_line ? "string" : "text",
          [=](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
            if (node.kind != YamlNode::Kind::kString) return wrong_type(reader, node, path, "a string");
            std::string why;
            if (node.text.empty() && rules.min > 0) {
              why = "must not be empty";
            } else if (node.text.size() < rules.min || node.text.size() > rules.max) {
              why = "must have " + std::to_string(rules.min) + " to " + std::to_string(rules.max) +
                    " bytes, got " + std::to_string(node.text.size());
            } else if (rules.one_line && has_control_characters(node.text)) {
              why = "must be one line without control characters";
            } else if (node.text.find('\0') != std::string::npos) {
              why = "must not hold a NUL";
            }
            if (why.empty()) return node.text;
            reader.problem(node, path, "E-CFG-RANGE", why);
            return nullptr;
          }};
}

Type choice(std::vector<std::string> names) {
  std::string form = join(names, ", ");
  return {std::move(form),
          [names = std::move(names)](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
            if (node.kind != YamlNode::Kind::kString)
              return wrong_type(reader, node, path, "one of " + join(names, ", "));
            if (std::find(names.begin(), names.end(), node.text) != names.end()) return node.text;
            reader.problem(
                node, path, "E-CFG-ENUM",
                "must be one of " + join(names, ", ") + ", " + found(node) + did_you_mean(node.text, names));
            return nullptr;
          }};
}

Type size_in_bytes() {
  return {"bytes, or a size such as 512 MiB",
          [](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
            if (node.kind == YamlNode::Kind::kInt) return whole(0)(reader, node, path);
            if (node.kind != YamlNode::Kind::kString)
              return wrong_type(reader, node, path, "a size such as 512 MiB");
            const auto bytes = parse_bytes(node.text);
            if (bytes) return *bytes;
            reader.problem(node, path, "E-CFG-RANGE", "must be a size such as 512 MiB, " + found(node));
            return nullptr;
          }};
}

Type absolute_path() {
  return {"absolute path", [](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
            Json value = text({.min = 1})(reader, node, path);
            if (value.is_null() || node.text.starts_with('/')) return value;
            reader.problem(node, path, "E-CFG-RANGE", "must be an absolute path, " + found(node));
            return nullptr;
          }};
}

// Collection types.

Type list_of(Type item, std::size_t min, std::size_t max) {
  // The reference page shows the fields of the items as a table of their own.
  std::string form = item.fields().empty() ? "list of " + item.form() : "list of maps";
  std::vector<Field> fields = item.fields();
  auto read = [=, item = std::move(item)](Reader& reader, const YamlNode& node,
                                          const std::string& path) -> Json {
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
  return {std::move(form), std::move(read), std::move(fields)};
}

Type map_of(Type value) {
  std::string form = "map of " + value.form();
  auto read = [value = std::move(value)](Reader& reader, const YamlNode& node,
                                         const std::string& path) -> Json {
    if (!node.is_map()) return wrong_type(reader, node, path, "a map");
    Json map = Json::object();
    for (const YamlEntry& entry : node.entries)
      map[entry.key] = value(reader, entry.value, child(path, entry.key));
    return map;
  };
  return {std::move(form), std::move(read)};
}

Type free_map() { return map_of(any()); }

Field required(std::string name, Type type, std::string doc) {
  return {std::move(name), std::move(type), Field::Absent::kError, nullptr, std::move(doc)};
}
Field defaulted(std::string name, Type type, Json fallback, std::string doc) {
  return {std::move(name), std::move(type), Field::Absent::kDefault, std::move(fallback), std::move(doc)};
}
Field section(std::string name, Type type, std::string doc) {
  return {std::move(name), std::move(type), Field::Absent::kSection, nullptr, std::move(doc)};
}
Field optional(std::string name, Type type, std::string doc) {
  return {std::move(name), std::move(type), Field::Absent::kOmit, nullptr, std::move(doc)};
}
Type inert(const Type& type) {
  auto read = [type](Reader& reader, const YamlNode& node, const std::string& path) {
    const bool empty = (node.is_list() || node.is_map()) && node.items.empty() && node.entries.empty();
    if (!empty) reader.warn(node, path, "E-CFG-REMOVED", "has no effect");
    return type(reader, node, path);
  };
  return {type.form(), std::move(read)};
}
Field idle(std::string name, const Type& type) { return optional(std::move(name), inert(type), kIdle); }

namespace {

void report_unknown(Reader& reader, const YamlEntry& entry, const std::string& path,
                    const std::vector<Field>& fields, const Explain& explain) {
  std::string why = explain ? explain(entry.key) : "";
  // The hint of the section has precedence over the spelling suggestion.
  if (why.empty()) {
    std::vector<std::string> names;
    for (const Field& field : fields) names.push_back(field.name);
    why = did_you_mean(entry.key, names);
  }
  reader.problem(entry, child(path, entry.key), "E-CFG-UNKNOWN", "unknown field" + why);
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
      // The empty map carries the position of its parent, so that problems inside point there.
      const YamlNode empty{
          .kind = YamlNode::Kind::kMap, .line = map.line, .column = map.column, .source = map.source};
      resolved[field.name] = field.type(reader, empty, child(path, field.name));
      break;
    }
    case Field::Absent::kOmit:
      break;
  }
}

}  // namespace

Type table(std::vector<Field> fields, Check check, Explain explain) {
  // The fields are needed twice: for the reference page and for reading.
  std::vector<Field> shown = fields;
  auto read = [fields = std::move(fields), check = std::move(check), explain = std::move(explain)](
                  Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    if (!node.is_map()) return wrong_type(reader, node, path, "a map");
    for (const YamlEntry& entry : node.entries) {
      const bool known = std::any_of(fields.begin(), fields.end(),
                                     [&](const Field& field) { return field.name == entry.key; });
      if (!known) report_unknown(reader, entry, path, fields, explain);
    }
    Json resolved = Json::object();
    // Fields are read in the order of the table, which is therefore the order in the resolved document.
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
  return {"map", std::move(read), std::move(shown)};
}

}  // namespace det::expconf
