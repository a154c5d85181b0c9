// Paging of lists in memory. Lists from the database are paged in SQL.
#pragma once

#include <iterator>
#include <vector>

#include "master/api/convert/convert.h"

namespace det::api {

/// Returns the page of `all` that the request's offset and limit select, and describes it in `pagination`. A
/// limit of 0 means all.
template <typename T, typename Request>
std::vector<T> page_of(std::vector<T> all, const Request& request, v1::Pagination* pagination) {
  // Sorting has been done by the caller, so the order of the window is irrelevant.
  const db::Window window = to_window(request.offset(), request.limit(), v1::ORDER_BY_ASC, -1);
  const auto total = static_cast<std::int64_t>(all.size());
  const db::Span span = db::resolve(window, total);
  db::Page<T> page{.total = total, .start = span.first};
  page.rows.assign(std::make_move_iterator(all.begin() + span.first),
                   std::make_move_iterator(all.begin() + span.first + span.count));
  to_pagination(page, window, pagination);
  return std::move(page.rows);
}

}  // namespace det::api
