// Windows and pages of lists, for the queries behind the API. Queries are grouped by noun, one file each.
// Rows are plain structs without protobuf. All functions are thread-safe, block on the database, and fail
// with kUnavailable (database unreachable), kResourceExhausted (all connections busy) or the errors at their
// declaration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "master/core/model.h"
#include "master/db/pg/columns.h"
#include "master/db/pg/pool.h"

namespace det::db {

/// Workspaces that the caller may see; unset: all.
using Visible = std::optional<std::vector<std::int64_t>>;

/// Part of a list that a caller requests.
struct Window {
  std::int64_t offset = 0;  ///< Negative counts from the end.
  std::int64_t limit = -1;  ///< -1: no limit; -2: only the total.
  bool descending = false;
};
/// Returns " DESC" or " ASC".
std::string direction(const Window& window);

/// Part of a list, with its position in the whole.
template <typename T>
struct Page {
  std::vector<T> rows;
  std::int64_t total = 0;  ///< Size of the whole list, after filters.
  std::int64_t start = 0;  ///< Index of rows[0] in the whole list.
};

/// Absolute first index and number of elements.
struct Span {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
/// Resolves a window against a list of `total` elements. Clamps to the list.
Span resolve(const Window& window, std::int64_t total);

/// Reads one page. `count` returns the total and `select` the rows in order. Both take `params`; `select`
/// also takes the offset and the limit, as its last two parameters.
template <typename T>
Result<Page<T>> page_of(Pool& pool, Sql count, Sql select, Params params, const Window& window,
                        const Columns<T>& columns) {
  TRY_ASSIGN(const Rows counted, pool.run(count, params));
  Page<T> page;
  page.total = counted[0].template next<std::int64_t>();
  const Span span = resolve(window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  params.add(span.first);
  params.add(span.count);
  TRY_ASSIGN(page.rows, columns.read(pool.run(select, params)));
  return page;
}

/// Reads one page of the rows of `from` (FROM and WHERE with `params`), sorted by `order`.
template <typename T>
Result<Page<T>> list_page(Pool& pool, const std::string& from, const std::string& order, Params params,
                          const Window& window, const Columns<T>& columns) {
  const std::string offset = std::to_string(params.size() + 1), limit = std::to_string(params.size() + 2);
  return page_of(pool, "SELECT count(*)" + from,
                 columns.select(from + " ORDER BY " + order + " OFFSET $" + offset + " LIMIT $" + limit),
                 std::move(params), window, columns);
}

/// Fails with kNotFound, naming `named`, when a statement changed no row.
inline Status found(const Result<Rows>& rows, const std::string& named) {
  TRY(rows);
  if (rows->affected() == 0) return fail(Code::kNotFound, named + " not found");
  return {};
}
/// Returns the first column of the first row. kNotFound, naming `named`, when there is none.
template <typename T>
Result<T> value_of(const Result<Rows>& rows, const std::string& named) {
  TRY(rows);
  if (rows->empty()) return fail(Code::kNotFound, named + " not found");
  return (*rows)[0].next<T>();
}

}  // namespace det::db
