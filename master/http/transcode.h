// Owns turning an HTTP request into a protobuf message and back: path and query parameters by reflection,
// bodies by protobuf's JSON mapping. Pure.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "master/http/message.h"
#include "master/http/routes.h"

namespace det::http {

/// The request message of the matched route. kInvalidArgument names the parameter or says what is wrong with
/// the body. Unknown query parameters and unknown fields of the body are ignored, as upstream does.
Result<std::unique_ptr<google::protobuf::Message>> to_message(const Match& match, const Request& request,
                                                              int json_depth);
/// JSON with camelCase names, default values present, 64-bit integers as strings.
Result<std::string> to_json_text(const google::protobuf::Message& message, bool pretty);
/// An empty message of the type.
std::unique_ptr<google::protobuf::Message> new_message(const google::protobuf::Descriptor* type);
/// True when `key` or `key=true` is among the query parameters.
bool has_flag(const Request& request, std::string_view key);

}  // namespace det::http
