// Owns one series in memory: its points, its summary, and the extremes of each block of points. Pure.
#pragma once

#include "master/db/metric_cache.h"

namespace det::db {

class MetricColumn {
 public:
  /// Steps must rise from call to call.
  void append(const SeriesPoint& point);
  /// What extremes() gave of a column whose steps are beyond these, with that column's summary. Extremes
  /// follow each other directly; points may come before and after them.
  void append_extremes(const std::vector<SeriesPoint>& points, const MetricSummary& summary, bool has_finite);
  std::size_t size() const { return points_.size(); }
  const MetricSummary& summary() const { return summary_; }
  bool has_finite() const { return has_finite_; }
  const std::vector<SeriesPoint>& points() const { return points_; }
  /// Of each `block` points the smallest and the largest in their order; all points when there are few. An
  /// even number: a point that is alone is followed by NaN at the same steps.
  std::vector<SeriesPoint> extremes(std::size_t block) const;
  /// As MetricCache::series() says, for steps in [first, last]. Points that came as extremes are never parted
  /// from the others of their block.
  std::vector<SeriesPoint> reduced(std::int64_t first, std::int64_t last, std::size_t most) const;

 private:
  /// Positions of the smallest and the largest value; kNone when there is none.
  struct Extremes {
    static constexpr std::size_t kNone = SIZE_MAX;
    std::size_t low = kNone, high = kNone;
  };
  void keep(const SeriesPoint& point);
  void add(Extremes& into, std::size_t position) const;
  Extremes between(std::size_t first, std::size_t end) const;
  std::size_t position(std::int64_t steps) const;  ///< of the first point at or beyond
  std::vector<SeriesPoint> points_;
  std::vector<Extremes> blocks_;  ///< of full blocks only
  MetricSummary summary_;         ///< without group and name
  bool has_finite_ = false;
  std::size_t pairs_begin_ = 0, pairs_end_ = 0;  ///< points between came as extremes
};

}  // namespace det::db
