#include "master/db/queries/page.h"

#include <algorithm>

namespace det::db {

std::string direction(const Window& window) { return window.descending ? " DESC" : " ASC"; }

Span resolve(const Window& window, std::int64_t total) {
  Span span;
  // An offset beyond either end is clamped.
  span.first =
      window.offset < 0 ? std::max<std::int64_t>(0, total + window.offset) : std::min(window.offset, total);
  if (window.limit == -2) return span;
  const std::int64_t left = total - span.first;
  span.count = window.limit < 0 ? left : std::min(window.limit, left);
  return span;
}

}  // namespace det::db
