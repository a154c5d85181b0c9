// Owns what all reads for the API share: pages and live states. The reads themselves live by noun in
// queries_experiment.h, queries_trial.h, metric_cache.h, queries_checkpoint.h, queries_log.h and
// queries_model.h. Rows are plain structs; nothing here knows protobuf. All functions are thread-safe and
// fail with kUnavailable (database away), kResourceExhausted (all connections busy) or what they name
// themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "master/core/model.h"
#include "master/db/pool.h"

namespace det::db {

/// Which part of a list is wanted.
struct Window {
  std::int64_t offset = 0;  ///< negative counts from the end
  std::int64_t limit = -1;  ///< -1: everything; -2: only the total
  bool descending = false;
};

template <typename T>
struct Page {
  std::vector<T> rows;
  std::int64_t total = 0;  ///< of the whole list, after filters
  std::int64_t start = 0;  ///< index of rows[0] in the whole list
};

/// The absolute first index and the count that a window means in a list of `total`.
struct Span {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
Span resolve(const Window& window, std::int64_t total);

}  // namespace det::db
