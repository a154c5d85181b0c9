// Training lengths: {batches: n}, {records: n}, {epochs: n}, and plain numbers of batches in the searcher.
#include <array>

#include "common/base/text.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

const std::vector<std::string>& units() {
  static const std::vector<std::string> names{"batches", "records", "epochs"};
  return names;
}

/// Reads a map with exactly one unit.
Json read_length(Reader& reader, const YamlNode& node, const std::string& path, std::int64_t min) {
  const std::string form = "a length such as {batches: 100}, with batches, records or epochs";
  if (!node.is_map()) return wrong_type(reader, node, path, form);
  if (node.entries.empty()) {
    reader.problem(node, path, "E-CFG-MISSING", "must be " + form);
    return nullptr;
  }
  std::vector<Field> fields;
  for (const std::string& unit : units()) fields.push_back(optional(unit, whole(min), "that many " + unit));
  Json value = table(std::move(fields))(reader, node, path);
  // More than one unit would be ambiguous.
  if (value.size() > 1) {
    reader.problem(node, path, "E-CFG-CONFLICT", "must have one of batches, records, epochs, not several");
    return nullptr;
  }
  return value.empty() || value.begin()->is_null() ? Json(nullptr) : value;
}

}  // namespace

Type length_type(std::int64_t min) {
  return {"length: {batches: n}, {records: n} or {epochs: n}, n >= " + std::to_string(min),
          [min](Reader& reader, const YamlNode& node, const std::string& path) {
            return read_length(reader, node, path, min);
          }};
}

Type searcher_length_type() {
  const auto read = [](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    if (node.is_map()) return read_length(reader, node, path, 1);
    if (node.kind != YamlNode::Kind::kInt)
      return wrong_type(reader, node, path, "a number of batches or a length such as {epochs: 1}");
    Json count = whole(1)(reader, node, path);
    return count.is_null() ? count : Json{{"batches", count}};
  };
  return {"length, n >= 1, or a number of batches", read};
}

Length load_length(const Json& resolved) {
  if (resolved.contains("records"))
    return {Length::Unit::kRecords, resolved.at("records").get<std::int64_t>()};
  if (resolved.contains("epochs")) return {Length::Unit::kEpochs, resolved.at("epochs").get<std::int64_t>()};
  return {Length::Unit::kBatches, resolved.at("batches").get<std::int64_t>()};
}

}  // namespace det::expconf
