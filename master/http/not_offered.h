// Owns what upstream's HTTP API has and this one has not: such calls are answered 501 with the reason, not
// 404.
#pragma once

#include <span>
#include <string_view>

namespace det::http {

struct NotOffered {
  std::string_view verb;  ///< "GET"
  std::string_view path;  ///< "{name}" stands for any one segment
  std::string_view why;   ///< and what to do instead
};

std::span<const NotOffered> not_offered();
/// Null for what upstream has not either. Ask only for what no route serves.
const NotOffered* find_not_offered(std::string_view verb, std::string_view path);

}  // namespace det::http
