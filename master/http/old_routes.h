// Paths of Determined AI outside of /api/v1 that its clients call: the response of an API path in an older
// form. Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/base/json.h"
#include "master/http/message.h"

namespace det::http {

struct OldRoute {
  std::string_view path;    ///< as called
  std::string_view target;  ///< API path with the same parameters
  std::string_view extra;   ///< parameter that is added; "": none
  std::string_view content_type;
  std::string (*convert)(const Json& answer);  ///< body of a successful response
};

/// Returns the route of a path; null for another path.
const OldRoute* find_old_route(std::string_view path);
/// Returns an exchange that converts a successful response before it passes it on. Errors pass unchanged.
std::shared_ptr<Exchange> converted(std::shared_ptr<Exchange> inner, const OldRoute& route);

}  // namespace det::http
