// Owns the description of the HTTP API, made from the descriptors of its services: OpenAPI 2 ("Swagger") for
// programs, and one page without scripts for people.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace det::http {

/// Every route of the services: parameters, bodies, answers.
std::string openapi_json(const std::vector<const google::protobuf::ServiceDescriptor*>& services);
/// The same routes as HTML.
std::string openapi_page(const std::vector<const google::protobuf::ServiceDescriptor*>& services);

}  // namespace det::http
