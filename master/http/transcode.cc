// Reflection behind transcode.h.
#include "master/http/transcode.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/base/text.h"

namespace det::http {
namespace {

namespace pb = google::protobuf;

std::string plus_to_space(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c == '+') c = ' ';
  }
  return out;
}

const pb::FieldDescriptor* find_field(const pb::Descriptor& type, const std::string& name) {
  if (const auto* field = type.FindFieldByName(name)) return field;
  for (int i = 0; i < type.field_count(); ++i)
    if (type.field(i)->json_name() == name) return type.field(i);
  return nullptr;
}

bool is_wrapper_or_time(const pb::Descriptor& type) {
  return type.file()->name() == "google/protobuf/wrappers.proto" ||
         type.full_name() == "google.protobuf.Timestamp";
}

/// JSON accepted by protobuf's parser for this field. Strings are valid for numbers and times.
Json json_value(const pb::FieldDescriptor& field, const std::string& text) {
  // Enums are accepted by name or number.
  if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_ENUM && !text.empty() &&
      text.find_first_not_of("0123456789") == std::string::npos && text.size() < 10) {
    return std::stoi(text);
  }
  const bool boolean =
      field.cpp_type() == pb::FieldDescriptor::CPPTYPE_BOOL ||
      (field.message_type() && field.message_type()->full_name() == "google.protobuf.BoolValue");
  if (boolean && (text == "true" || text == "True" || text == "1" || text.empty())) return true;
  if (boolean && (text == "false" || text == "False" || text == "0")) return false;
  return text;
}

/// Sets the field at the dotted `path`. Returns false when there is no such field.
bool set_parameter(Json& root, const pb::Descriptor& type, const std::string& path,
                   const std::string& value) {
  const pb::Descriptor* level = &type;
  Json* at = &root;
  const std::vector<std::string> names = split(path, '.');
  if (names.size() > 8) return false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto* field = find_field(*level, names[i]);
    if (!field || field->is_map()) return false;
    if (i + 1 < names.size()) {
      if (!field->message_type() || field->is_repeated()) return false;
      level = field->message_type();
      at = &(*at)[field->name()];
      if (at->is_null()) *at = Json::object();
      if (!at->is_object()) return false;
      continue;
    }
    // Other messages have no scalar JSON form.
    if (field->message_type() && !is_wrapper_or_time(*field->message_type())) return false;
    if (field->is_repeated()) {
      Json& list = (*at)[field->name()];
      if (list.is_null()) list = Json::array();
      // Bounds the memory of one request.
      if (list.size() < 10'000) list.push_back(json_value(*field, value));
    } else {
      (*at)[field->name()] = json_value(*field, value);
    }
  }
  return true;
}

/// True for a value that the enumeration has, by name or by number.
bool is_enum_value(const Json& value, const pb::EnumDescriptor& type) {
  if (!value.is_string()) return true;
  const auto& name = value.get_ref<const std::string&>();
  return type.FindValueByName(name) || name.find_first_not_of("-0123456789") == name.npos;
}

/// Path of the first field that `type` does not have and that would set something, or of the first value that
/// its enumeration lacks; "" when there is none. Null and empty lists and objects set nothing: clients of
/// Determined AI send them for what they leave out.
std::string unknown_field(const Json& json, const pb::Descriptor& type) {
  if (!json.is_object() || type.file()->package() == "google.protobuf") return "";
  for (const auto& [name, value] : json.items()) {
    if (value.is_null() || (value.is_structured() && value.empty())) continue;
    const auto* field = find_field(type, name);
    if (!field) return name;
    if (field->is_map() || !(field->message_type() || field->enum_type())) continue;
    const Json& parts = value.is_array() ? value : Json::array({value});
    for (const Json& part : parts) {
      if (field->enum_type()) {
        if (!is_enum_value(part, *field->enum_type())) return name + ": " + part.get<std::string>();
      } else if (const auto below = unknown_field(part, *field->message_type()); !below.empty()) {
        return name + "." + below;
      }
    }
  }
  return "";
}

Status parse_into(std::string_view text, const std::string& what, pb::Message& message) {
  const pb::StringPiece piece(text.data(), text.size());
  if (pb::util::JsonStringToMessage(piece, &message).ok()) return {};
  // Slow path: fields that set nothing may be unknown, others are refused by name.
  message.Clear();
  pb::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = pb::util::JsonStringToMessage(piece, &message, options);
  if (status.ok()) {
    TRY_ASSIGN(const Json json, parse_json(text, {.bytes = text.size(), .depth = 512}));
    const std::string unknown = unknown_field(json, *message.GetDescriptor());
    if (unknown.empty()) return {};
    return fail(Code::kInvalidArgument,
                what + ": " + make_utf8(unknown.substr(0, 200)) + ": not offered; leave it out");
  }
  const auto detail = status.message();
  return fail(Code::kInvalidArgument,
              what + ": " + make_utf8(std::string(detail.data(), detail.size()).substr(0, 500)));
}

Result<Json> parameters(const Match& match, const Request& request) {
  const pb::Descriptor& type = *match.route->method->input_type();
  Json json = Json::object();
  if (!request.query.empty()) {
    const std::vector<std::string> pairs = split(request.query, '&');
    if (pairs.size() > 10'000) return fail(Code::kInvalidArgument, "too many query parameters");
    for (const std::string& pair : pairs) {
      const std::size_t equals = pair.find('=');
      std::string key, value;
      if (!percent_decode(plus_to_space(std::string_view(pair).substr(0, equals)), key) ||
          (equals != pair.npos &&
           !percent_decode(plus_to_space(std::string_view(pair).substr(equals + 1)), value))) {
        return fail(Code::kInvalidArgument, "malformed query parameter " + make_utf8(pair.substr(0, 100)));
      }
      set_parameter(json, type, key, value);
    }
  }
  for (const auto& [name, value] : match.parameters) {
    // A path parameter replaces a query parameter of the same name.
    json.erase(name);
    set_parameter(json, type, name, value);
  }
  return json;
}

}  // namespace

std::unique_ptr<pb::Message> new_message(const pb::Descriptor* type) {
  return std::unique_ptr<pb::Message>(pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

bool has_flag(const Request& request, std::string_view key) {
  for (const std::string& pair : split(request.query, '&')) {
    if (pair == key || pair == std::string(key) + "=true" || pair == std::string(key) + "=") return true;
  }
  return false;
}

Result<std::unique_ptr<pb::Message>> to_message(const Match& match, const Request& request, int json_depth) {
  auto message = new_message(match.route->method->input_type());
  const std::string& field = match.route->body;
  const std::string_view body = field.empty() ? std::string_view() : trim(request.body);
  if (!body.empty()) {
    if (auto bad = find_bad_utf8(body)) return fail(Code::kInvalidArgument, "body: not UTF-8");
    if (nested_deeper(body, json_depth)) {
      return fail(Code::kInvalidArgument, "body: nested deeper than " + std::to_string(json_depth));
    }
    // The body fills one field: wrap it in an object.
    if (field == "*") {
      TRY(parse_into(body, "body", *message));
    } else {
      TRY(parse_into("{\"" + field + "\":" + std::string(body) + "}", "body", *message));
    }
  }
  TRY_ASSIGN(Json json, parameters(match, request));
  if (!json.empty()) {
    auto from_address = new_message(match.route->method->input_type());
    TRY(parse_into(dump_json(json), "parameters", *from_address));
    message->MergeFrom(*from_address);
  }
  return message;
}

}  // namespace det::http
