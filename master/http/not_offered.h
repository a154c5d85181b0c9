// Calls of the HTTP API of Determined AI that this cluster does not offer. They are answered with 501 and a
// reason instead of 404.
#pragma once

#include <span>
#include <string_view>

namespace det::http {

/// One call that is not offered.
struct NotOffered {
  std::string_view verb;  ///< Such as "GET".
  std::string_view path;  ///< "{name}" matches any one segment.
  std::string_view why;   ///< Reason, and the alternative.
};

/// All such calls.
std::span<const NotOffered> not_offered();
/// Finds the entry for a request that matches no route. Null when Determined AI does not have the call
/// either.
const NotOffered* find_not_offered(std::string_view verb, std::string_view path);

}  // namespace det::http
