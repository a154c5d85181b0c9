// The tables of the reference page, generated from the schema that parses a configuration.
#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

/// Escapes the bars of a Markdown table cell.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string default_of(const Field& field) {
  switch (field.absent) {
    case Field::Absent::kError:
      return "**required**";
    case Field::Absent::kDefault:
      return "`" + cell(dump_json(field.fallback)) + "`";
    case Field::Absent::kSection:
    case Field::Absent::kOmit:
      return "";
  }
  return "";
}

void write_table(const std::string& path, const std::vector<Field>& fields, std::string& out) {
  out += "\n### " + (path.empty() ? std::string("Top level") : "`" + path + "`") + "\n\n";
  out += "| Field | Default | Allowed | Effect |\n|---|---|---|---|\n";
  for (const Field& field : fields)
    out += "| `" + field.name + "` | " + default_of(field) + " | " + cell(field.type.form()) + " | " +
           cell(field.doc) + " |\n";
  for (const Field& field : fields) {
    const std::string items = field.type.form().starts_with("list") ? "[]" : "";
    if (!field.type.fields().empty()) write_table(child(path, field.name) + items, field.type.fields(), out);
  }
}

}  // namespace

std::string reference() {
  std::string out;
  write_table("", top_level().fields(), out);
  return out;
}

}  // namespace det::expconf
