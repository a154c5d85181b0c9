#include "common/base/json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "common/base/text.h"

// Instantiates the template that cmake/precompiled/std.h declares extern.
template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace det {
namespace {

tl::unexpected<Error> refuse(std::string message) {
  return fail(Code::kInvalidArgument, "JSON: " + std::move(message));
}

/// Strips the "[json.exception...] " prefix from a message of nlohmann-json.
std::string plain_message(const std::string& what) {
  const std::size_t at = what.find("] ");
  return at == std::string::npos ? what : what.substr(at + 2);
}

bool has_non_finite(const Json& value) {
  if (value.is_number_float()) return !std::isfinite(value.get<double>());
  if (!value.is_structured()) return false;
  for (const auto& item : value) {
    if (has_non_finite(item)) return true;
  }
  return false;
}

void name_non_finite(Json& value) {
  if (value.is_number_float()) {
    value = json_double(value.get<double>());
  } else if (value.is_structured()) {
    for (auto& item : value) name_non_finite(item);
  }
}

std::string dump(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

bool nested_deeper(std::string_view text, int limit) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limit) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) return refuse("larger than " + std::to_string(limits.bytes) + " bytes");
  if (const auto bad = find_bad_utf8(text)) return refuse("invalid UTF-8 at byte " + std::to_string(*bad));
  if (nested_deeper(text, limits.depth)) return refuse("nested deeper than " + std::to_string(limits.depth));

  // One set of keys for each open object; nlohmann-json itself accepts duplicate keys.
  std::vector<std::set<std::string>> keys;
  std::string repeated;
  const auto watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second &&
        repeated.empty()) {
      repeated = value.get<std::string>();
    }
    return true;
  };
  try {
    Json value = Json::parse(text.begin(), text.end(), watch);
    if (!repeated.empty()) return refuse("the key \"" + repeated + "\" is set twice");
    return value;
  } catch (const Json::exception& error) {
    // The message quotes the last bytes read, which may end inside a UTF-8 character.
    return refuse(make_utf8(plain_message(error.what())));
  }
}

std::string dump_json(const Json& value, int indent) {
  if (!has_non_finite(value)) return dump(value, indent);
  // Copies only if needed: the common document has no NaN or infinity.
  Json named = value;
  name_non_finite(named);
  return dump(named, indent);
}

Json json_double(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

std::optional<double> read_double(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

Status set_path(Json& root, std::string_view path, Json value) {
  const std::vector<std::string> parts = split(path, '.');
  for (const std::string& part : parts) {
    if (part.empty()) {
      return fail(Code::kInvalidArgument,
                  "\"" + std::string(path) + "\" is no path; write it like searcher.max_trials");
    }
  }
  Json* at = &root;
  std::string walked;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (at->is_null()) *at = Json::object();
    if (!at->is_object()) {
      return fail(Code::kInvalidArgument, "cannot set \"" + std::string(path) + "\": \"" + walked +
                                              "\" is a " + at->type_name() + ", not a map");
    }
    walked += (walked.empty() ? "" : ".") + parts[i];
    at = &(*at)[parts[i]];
  }
  *at = std::move(value);
  return {};
}

const Json* find_path(const Json& root, std::string_view path) {
  const Json* at = &root;
  for (const std::string& part : split(path, '.')) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(part);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

}  // namespace det
