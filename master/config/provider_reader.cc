// ProviderReader.
#include "master/config/provider_reader.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/base/units.h"

namespace det {
namespace {

bool is_line(const YamlNode& node) {
  const bool scalar = !node.is_list() && !node.is_map() && !node.is_null();
  return scalar && !node.text.empty() && !has_control_characters(node.text);
}

}  // namespace

void ProviderReader::integer(const char* key, int& value, int largest) {
  const YamlNode* const given = node_.find(key);
  if (!given) return;
  if (given->kind != YamlNode::Kind::kInt || given->integer < 1 || given->integer > largest)
    return add(key, "must be an integer from 1 to " + std::to_string(largest));
  value = static_cast<int>(given->integer);
}

void ProviderReader::duration(const char* key, Duration& value, Duration least) {
  const YamlNode* const given = node_.find(key);
  if (!given) return;
  const auto parsed = parse_duration(given->text);
  if (!parsed || *parsed < least) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(least).count();
    return add(key, "must be a duration of at least " + std::to_string(seconds) + "s, like 30m or 4h");
  }
  value = *parsed;
}

void ProviderReader::text(const char* key, std::string& value) {
  const YamlNode* const given = node_.find(key);
  if (!given) return;
  if (!is_line(*given)) return add(key, "must be a text of one line");
  value = given->text;
}

void ProviderReader::long_options(const char* key, std::vector<std::string>& values,
                                  const std::vector<std::string>& own) {
  const YamlNode* const given = node_.find(key);
  if (!given) return;
  if (!given->is_list()) return add(key, "must be a list of options like --exclusive");
  for (const YamlNode& item : given->items) {
    const std::string& text = item.text;
    const bool is_long = text.starts_with("--") && text.size() > 2;
    const std::string name = is_long ? text.substr(2, text.find('=') - 2) : "";
    if (item.kind != YamlNode::Kind::kString || name.empty() || has_control_characters(text)) {
      add(key, "must be a list of long options like --exclusive or --mem=4G");
    } else if (std::find(own.begin(), own.end(), name) != own.end()) {
      add(key, "must not contain --" + name + ": the master sets it");
    } else {
      values.push_back(text);
    }
  }
}

void ProviderReader::texts(const char* key, Json& value) {
  const YamlNode* const given = node_.find(key);
  if (!given) return;
  if (!given->is_map()) return add(key, "must be a map of texts");
  value = Json::object();
  for (const YamlEntry& entry : given->entries) {
    if (!is_line(entry.value)) return add(std::string(key) + "." + entry.key, "must be a text of one line");
    value[entry.key] = entry.value.text;
  }
}

void ProviderReader::maps(const char* key, Json& value) {
  const YamlNode* const given = node_.find(key);
  if (!given) return;
  const auto& items = given->items;
  if (!given->is_list() ||
      !std::all_of(items.begin(), items.end(), [](const YamlNode& item) { return item.is_map(); }))
    return add(key, "must be a list of maps");
  value = to_json(*given);
}

void ProviderReader::map(const char* key, Json& value) {
  const YamlNode* const given = node_.find(key);
  if (!given) return;
  if (!given->is_map()) return add(key, "must be a map");
  value = to_json(*given);
}

void ProviderReader::require(const char* key, const std::string& meaning) {
  if (!node_.find(key)) add(key, "is required: " + meaning);
}

void ProviderReader::refuse(const char* key, const std::string& reason) {
  if (node_.find(key)) add(key, reason);
}

void ProviderReader::refuse_others(const std::string& type, const std::vector<std::string>& known) {
  for (const YamlEntry& entry : node_.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    add(entry.key, "is no key of provider type " + type + "; there are " + join(known, ", ") +
                       did_you_mean(entry.key, known));
  }
}

void ProviderReader::add(const std::string& key, const std::string& message) {
  problems_.push_back({.code = "E-CFG-VALUE", .path = path_ + "." + key, .message = message});
}

}  // namespace det
