// Shared types of the queries behind the API: windows and pages. The queries are grouped by noun in
// queries_*.h, metric_cache.h and registry.h. Rows are plain structs without protobuf. All functions are
// thread-safe, block on the database, and fail with kUnavailable (database unreachable), kResourceExhausted
// (all connections busy) or the errors at their declaration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "master/core/model.h"
#include "master/db/pg/pool.h"

namespace det::db {

/// Part of a list that a caller requests.
struct Window {
  std::int64_t offset = 0;  ///< Negative counts from the end.
  std::int64_t limit = -1;  ///< -1: no limit; -2: only the total.
  bool descending = false;
};

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

}  // namespace det::db
