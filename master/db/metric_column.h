// Owns one series in memory: its points, its summary, and the extremes of each block of points. Pure.
#pragma once

#include "master/db/metric_cache.h"

namespace det::db {

class MetricColumn {
 public:
  /// Steps must rise from call to call.
  void append(const SeriesPoint& point);
  std::size_t size() const { return points_.size(); }
  const MetricSummary& summary() const { return summary_; }
  /// As MetricCache::series() says, for steps in [first, last].
  std::vector<SeriesPoint> reduced(std::int64_t first, std::int64_t last, std::size_t most) const;

 private:
  /// Positions of the smallest and the largest value; kNone when there is none.
  struct Extremes {
    static constexpr std::size_t kNone = SIZE_MAX;
    std::size_t low = kNone, high = kNone;
  };
  void add(Extremes& into, std::size_t position) const;
  Extremes between(std::size_t first, std::size_t end) const;
  std::size_t position(std::int64_t steps) const;  ///< of the first point at or beyond
  std::vector<SeriesPoint> points_;
  std::vector<Extremes> blocks_;  ///< of full blocks only
  MetricSummary summary_;   ///< without group and name
  bool has_finite_ = false;
};

}  // namespace det::db
