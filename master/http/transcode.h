// Conversion of HTTP requests to protobuf messages and back: path and query parameters by reflection, bodies
// by protobuf's JSON mapping. Pure.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>

#include "common/base/result.h"
#include "master/http/message.h"
#include "master/http/routes.h"

namespace det::http {

/// Builds the request message of the matched route. Path and query parameters are merged over the body.
/// Unknown query parameters are ignored. kInvalidArgument names the parameter, the error in the body, or the
/// unknown field of the body that would set something.
Result<std::unique_ptr<google::protobuf::Message>> to_message(const Match& match, const Request& request,
                                                              int json_depth);
/// Returns JSON with camelCase names, default values present, unset messages as null and 64-bit integers as
/// strings.
std::string to_json_text(const google::protobuf::Message& message, bool pretty);
/// Returns an empty message of this type.
std::unique_ptr<google::protobuf::Message> new_message(const google::protobuf::Descriptor* type);
/// True when `key`, `key=` or `key=true` is among the query parameters.
bool has_flag(const Request& request, std::string_view key);

}  // namespace det::http
