// Owns the series behind charts: numbers read once out of the metric rows, kept in bounded memory, extended
// by what has come since, and reduced by ranges of extremes, so that a chart of a million points costs
// microseconds. Rows stay the truth; nothing here is stored. Long series are read as the bulk writer packs
// them (metric_chunk.h): a chart of the whole by the extremes of its blocks, so that the first answer of a
// master that has just started takes milliseconds.
#pragma once

#include <functional>

#include "master/db/bulk.h"
#include "master/db/queries.h"

namespace det::db {

struct SeriesRequest {
  std::vector<TrialId> trials;
  /// Which series; none: all.
  std::function<bool(const std::string& group, const std::string& name)> wanted;
  std::int64_t first_steps = 0;
  std::int64_t last_steps = INT64_MAX;
  int max_datapoints = 1000;  ///< clamped to [2, 100000]
};
struct SeriesPoint {
  std::int64_t steps_completed = 0;
  double value = 0;
  WallTime reported;
};
struct Series {
  TrialId trial;
  std::string group, name;
  std::vector<SeriesPoint> points;  ///< in order of steps
};

/// Of one metric of one group over the rows that are not archived; NaN and infinities count, but enter
/// neither min nor max nor sum.
struct MetricSummary {
  std::string group, name;
  std::int64_t count = 0;
  double min = 0, max = 0, sum = 0;
  double last = 0;  ///< of the highest steps
};

/// Thread-safe. What makes rows change below the newest known one makes a trial be read again: a new run
/// (roll-backs archive rows with it), a late row (BulkWriter::late_rows), or another count of validations.
class MetricCache {
 public:
  /// Keeps about `most_points` numbers of 24 bytes, those used last.
  MetricCache(Pool& pool, BulkWriter& bulk, std::size_t most_points = 8 << 20);
  ~MetricCache();

  /// Rows that are not archived, in order of the request's trials (unknown ones have none), then group, then
  /// name; a series without a point in the range is left out. One with more than max_datapoints is cut into
  /// max_datapoints / 2 equal buckets of steps, each giving the points of its smallest and its largest value:
  /// no peak is lost. Where only extremes of blocks of 64 points have been read, and that is with four blocks
  /// a bucket and more, a bucket ends where a block does; blocks at the ends of the range are read point by
  /// point. NaN is no value when reducing.
  Result<std::vector<Series>> series(const SeriesRequest& request);
  /// By group, then name.
  Result<std::vector<MetricSummary>> summaries(TrialId trial);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::db
