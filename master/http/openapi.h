// Description of the HTTP API, generated from the service descriptors: OpenAPI 2 (Swagger) and a static HTML
// page.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace det::http {

/// Returns all routes with parameters, bodies and replies as OpenAPI JSON.
std::string openapi_json(const std::vector<const google::protobuf::ServiceDescriptor*>& services);
/// Returns the same routes as HTML.
std::string openapi_page(const std::vector<const google::protobuf::ServiceDescriptor*>& services);

}  // namespace det::http
