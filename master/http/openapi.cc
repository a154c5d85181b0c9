#include "master/http/openapi.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/json.h"
#include "common/base/text.h"
#include "det/route.pb.h"
#include "master/http/routes.h"

namespace det::http {
namespace {

namespace pb = google::protobuf;

std::string path_of(const Route& route) { return "/" + join(route.segments, "/"); }

/// Collects message schemas as they are referenced.
class Schemas {
 public:
  Json reference(const pb::Descriptor& type) {
    // Well-known types have a JSON form of their own.
    const std::string& name = type.full_name();
    if (name == "google.protobuf.Timestamp") return {{"type", "string"}, {"format", "date-time"}};
    if (type.file()->name() == "google/protobuf/wrappers.proto")
      return scalar(*type.FindFieldByName("value"));
    if (name == "google.protobuf.ListValue") return {{"type", "array"}, {"items", Json::object()}};
    if (name.starts_with("google.protobuf.")) return {{"type", "object"}};
    // Insert before defining: messages may refer to themselves.
    if (seen_.insert(name).second) define(type);
    return {{"$ref", "#/definitions/" + short_name(type)}};
  }

  Json scalar(const pb::FieldDescriptor& field) {
    switch (field.cpp_type()) {
      // The JSON mapping of protobuf writes 64-bit integers as strings.
      case pb::FieldDescriptor::CPPTYPE_INT64:
      case pb::FieldDescriptor::CPPTYPE_UINT64:
        return {{"type", "string"}, {"format", "int64"}};
      case pb::FieldDescriptor::CPPTYPE_INT32:
      case pb::FieldDescriptor::CPPTYPE_UINT32:
        return {{"type", "integer"}, {"format", "int32"}};
      case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      case pb::FieldDescriptor::CPPTYPE_FLOAT:
        return {{"type", "number"}, {"format", "double"}};
      case pb::FieldDescriptor::CPPTYPE_BOOL:
        return {{"type", "boolean"}};
      case pb::FieldDescriptor::CPPTYPE_ENUM: {
        Json names = Json::array();
        for (int i = 0; i < field.enum_type()->value_count(); ++i)
          names.push_back(field.enum_type()->value(i)->name());
        return {{"type", "string"}, {"enum", std::move(names)}};
      }
      case pb::FieldDescriptor::CPPTYPE_MESSAGE:
        return reference(*field.message_type());
      case pb::FieldDescriptor::CPPTYPE_STRING:
        break;
    }
    if (field.type() == pb::FieldDescriptor::TYPE_BYTES) return {{"type", "string"}, {"format", "byte"}};
    return {{"type", "string"}};
  }

  Json of(const pb::FieldDescriptor& field) {
    if (field.is_map()) {
      return {{"type", "object"}, {"additionalProperties", scalar(*field.message_type()->map_value())}};
    }
    if (field.is_repeated()) return {{"type", "array"}, {"items", scalar(field)}};
    return scalar(field);
  }

  Json take() { return std::move(definitions_); }

 private:
  /// Definition names start with "v1", as in the API of Determined AI.
  static std::string short_name(const pb::Descriptor& type) {
    return "v1" + type.full_name().substr(type.full_name().find("v1.") == std::string::npos
                                              ? 0
                                              : type.full_name().find("v1.") + 3);
  }
  void define(const pb::Descriptor& type) {
    Json properties = Json::object();
    for (int i = 0; i < type.field_count(); ++i) properties[type.field(i)->json_name()] = of(*type.field(i));
    definitions_[short_name(type)] = {{"type", "object"}, {"properties", std::move(properties)}};
  }

  std::set<std::string> seen_;
  Json definitions_ = Json::object();
};

/// Adds the fields that are in neither path nor body as query parameters, one level of nested messages
/// included.
void add_query(const pb::Descriptor& type, const std::string& prefix, const std::set<std::string>& taken,
               Schemas& schemas, Json& parameters, const std::string& shown = "") {
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.field(i);
    if (taken.contains(prefix + field.name()) || field.is_map()) continue;
    const bool plain = field.cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE ||
                       field.message_type()->full_name().starts_with("google.protobuf.");
    if (!plain) {
      if (prefix.empty() && !field.is_repeated())
        add_query(*field.message_type(), field.name() + ".", taken, schemas, parameters,
                  field.json_name() + ".");
      continue;
    }
    Json parameter = {{"name", shown + field.json_name()}, {"in", "query"}, {"required", false}};
    parameter.update(schemas.of(field));
    if (field.is_repeated()) parameter["collectionFormat"] = "multi";
    parameters.push_back(std::move(parameter));
  }
}

Json parameters_of(const Route& route, Schemas& schemas) {
  Json parameters = Json::array();
  std::set<std::string> taken;
  for (const std::string& segment : route.segments) {
    if (!segment.starts_with('{')) continue;
    const std::string name = segment.substr(1, segment.size() - 2);
    taken.insert(name);
    parameters.push_back({{"name", name}, {"in", "path"}, {"required", true}, {"type", "string"}});
  }
  const pb::Descriptor& input = *route.method->input_type();
  if (route.body == "*") {
    parameters.push_back(
        {{"name", "body"}, {"in", "body"}, {"required", true}, {"schema", schemas.reference(input)}});
  } else if (!route.body.empty()) {
    taken.insert(route.body);
    parameters.push_back({{"name", "body"},
                          {"in", "body"},
                          {"required", true},
                          {"schema", schemas.of(*input.FindFieldByName(route.body))}});
  }
  if (route.body != "*") add_query(input, "", taken, schemas, parameters);
  return parameters;
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string openapi_json(const std::vector<const pb::ServiceDescriptor*>& services) {
  const Routes routes(services);
  Schemas schemas;
  Json paths = Json::object();
  std::set<std::string> ids;
  for (const Route& route : routes.all()) {
    // operationId is the name of the method; additional paths of it get a number.
    std::string id = route.method->name();
    for (int more = 2; !ids.insert(id).second; ++more) id = route.method->name() + std::to_string(more);
    Json answer = {{"description", "the answer"},
                   {"schema", schemas.reference(*route.method->output_type())}};
    if (route.method->server_streaming()) answer["description"] = "lines of {\"result\": …}";
    paths[path_of(route)][to_lower(route.verb)] = {{"operationId", id},
                                                   {"tags", Json::array({route.method->service()->name()})},
                                                   {"parameters", parameters_of(route, schemas)},
                                                   {"responses", {{"200", std::move(answer)}}}};
  }
  return dump_json(
      Json{{"swagger", "2.0"},
           {"info", {{"title", "Determinant"}, {"version", "v1"}}},
           {"consumes", Json::array({"application/json"})},
           {"produces", Json::array({"application/json"})},
           {"securityDefinitions",
            {{"BearerToken", {{"type", "apiKey"}, {"name", "Authorization"}, {"in", "header"}}}}},
           {"security", Json::array({{{"BearerToken", Json::array()}}})},
           {"paths", std::move(paths)},
           {"definitions", schemas.take()}});
}

std::string openapi_page(const std::vector<const pb::ServiceDescriptor*>& services) {
  const Routes routes(services);
  std::string page =
      "<!doctype html><html lang=en><meta charset=utf-8><title>REST API</title><h1>REST API</h1><p>Every "
      "call as <a href=\"/api/v1/api.swagger.json\">OpenAPI</a>; errors are <code>{\"error\": {\"code\", "
      "\"reason\", \"error\"}}</code>.";
  // One table per service.
  for (const auto* service : services) {
    std::string rows;
    for (const Route& route : routes.all()) {
      if (route.method->service() != service) continue;
      const std::string input = route.body.empty()  ? ""
                                : route.body == "*" ? route.method->input_type()->name()
                                                    : route.body;
      rows += "<tr><td>" + route.verb + "<td><code>" + escape(path_of(route)) + "</code><td>" +
              escape(input) + "<td>" + escape(route.method->output_type()->name()) + "</tr>";
    }
    if (rows.empty()) continue;
    page += "<h2>" + escape(service->name()) + "</h2><table><tr><th>Method<th>Path<th>Body<th>Answer</tr>" +
            rows + "</table>";
  }
  return page + "</html>";
}

}  // namespace det::http
