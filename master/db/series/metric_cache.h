// Cache of the metric series behind charts. Series are read once from the metric rows, kept in bounded
// memory, extended with new rows and downsampled by min/max buckets, so that a chart of a million points
// takes microseconds. The rows stay the source of truth; the cache stores nothing. Long series are read from
// packed chunks (metric_chunk.h): a chart of a whole series reads only block extremes, so a cold master
// answers in milliseconds.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "master/db/pg/pool.h"

namespace det::db {

class SeriesWriter;

/// A query for chart series.
struct SeriesRequest {
  std::vector<TrialId> trials;
  /// Predicate that selects series; empty selects all.
  std::function<bool(const std::string& group, const std::string& name)> wanted;
  /// Inclusive range of steps.
  std::int64_t first_steps = 0;
  std::int64_t last_steps = INT64_MAX;
  /// Maximum points per series; clamped to [2, 100000].
  int max_datapoints = 1000;
};
/// One value of a metric.
struct SeriesPoint {
  std::int64_t steps_completed = 0;
  double value = 0;
  WallTime reported;
};
/// One metric of one group of one trial.
struct Series {
  TrialId trial;
  std::string group, name;
  std::vector<SeriesPoint> points;  ///< Ascending steps.
};

/// Summary of one metric over all rows that are not archived. NaN and infinities are counted, but do not
/// enter min, max and sum.
struct MetricSummary {
  std::string group, name;
  std::int64_t count = 0;
  double min = 0, max = 0, sum = 0;
  double last = 0;  ///< Value at the highest step.
};

/// Thread-safe; readers of trials in different shards do not block each other. A trial is read again when
/// rows below its newest known one may have changed: on a new run (a rollback archives rows), on a late row
/// (SeriesWriter::late_rows()) and when the number of validations changes.
class MetricCache {
 public:
  /// Keeps about `max_points` points of 24 bytes each and evicts the least recently used groups. `pool` and
  /// `writer` must outlive the cache.
  MetricCache(Pool& pool, SeriesWriter& writer, std::size_t max_points = 8 << 20);
  ~MetricCache();

  /// Returns series of rows that are not archived, ordered by the trials of the request, then group, then
  /// name. Series without a point in the range and unknown trials are left out. Blocks on the database when
  /// the cache is cold.
  ///
  /// A series of more than max_datapoints points is downsampled: max_datapoints / 2 equal buckets of steps
  /// each yield the points of their minimum and maximum, so no peak is lost. NaN does not take part. When
  /// only the extremes of 64-point or 256-point blocks were read (four or more blocks a bucket), a bucket
  /// ends at a block boundary; blocks at the ends of the range are read point by point.
  Result<std::vector<Series>> series(const SeriesRequest& request);
  /// Returns the summaries of all metrics of a trial by group and name.
  Result<std::vector<MetricSummary>> summaries(TrialId trial);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::db
