// One metric series in memory. Pure; not thread-safe.
#pragma once

#include "master/db/series/metric_cache.h"

namespace det::db {

/// Points of one metric, a summary of them, and the extremes of every block, which make range queries cheap.
class MetricColumn {
 public:
  /// Appends a point. Steps must increase from call to call.
  void append(const SeriesPoint& point);
  /// Appends extremes() of a column with higher steps, and merges its summary. Calls must follow each other
  /// directly; plain points may come before and after all of them.
  void append_extremes(const std::vector<SeriesPoint>& points, const MetricSummary& summary, bool has_finite);
  /// Number of points in memory.
  std::size_t size() const { return points_.size(); }
  /// Summary without group and name.
  const MetricSummary& summary() const { return summary_; }
  /// True when at least one value is finite, that is, when min and max are valid.
  bool has_finite() const { return has_finite_; }
  /// All points in memory, by steps.
  const std::vector<SeriesPoint>& points() const { return points_; }
  /// Returns the minimum and maximum of every `block` points in their order, or all points of a short series.
  /// The result has an even size: a single point is followed by a NaN at the same step.
  std::vector<SeriesPoint> extremes(std::size_t block) const;
  /// Returns the points with steps in [first, last], downsampled to `most` as described at
  /// MetricCache::series(). A pair of extremes from one block is never split.
  std::vector<SeriesPoint> reduced(std::int64_t first, std::int64_t last, std::size_t most) const;

 private:
  /// Positions of the minimum and maximum; kNone when there is none.
  struct Extremes {
    static constexpr std::size_t kNone = SIZE_MAX;
    std::size_t low = kNone, high = kNone;
  };
  void keep(const SeriesPoint& point);
  void add(Extremes& into, std::size_t position) const;
  Extremes between(std::size_t first, std::size_t end) const;
  /// Position of the first point at or beyond `steps`.
  std::size_t position(std::int64_t steps) const;
  std::vector<SeriesPoint> points_;
  std::vector<Extremes> blocks_;  ///< One per full block of kBlock points.
  MetricSummary summary_;
  bool has_finite_ = false;
  /// Points in [pairs_begin_, pairs_end_) were appended as pairs of extremes.
  std::size_t pairs_begin_ = 0, pairs_end_ = 0;
};

}  // namespace det::db
