// Owns the series behind charts, reduced in the database before anything travels.
#pragma once

#include "master/db/queries.h"

namespace det::db {

struct SeriesRequest {
  TrialId trial;
  std::string group;
  std::vector<std::string> names;  ///< empty: every name that the newest rows of the group have
  std::int64_t first_steps = 0;
  std::int64_t last_steps = INT64_MAX;
  int max_datapoints = 1000;  ///< at least 2, at most 100000
};
struct SeriesPoint {
  std::int64_t steps_completed = 0;
  double value = 0;
  WallTime reported;
};
struct Series {
  std::string name;
  std::vector<SeriesPoint> points;  ///< in order of steps
};
/// Rows that are not archived. With more rows than max_datapoints the range is cut into max_datapoints / 2
/// equal buckets of steps, each giving the points of its smallest and its largest value: no peak is lost. NaN
/// is no value when reducing.
Result<std::vector<Series>> metric_series(Pool& pool, const SeriesRequest& request);

struct MetricName {
  std::string group, name;
};
/// Names seen in the newest 100 visible rows of each group of these trials; sorted.
Result<std::vector<MetricName>> metric_names(Pool& pool, const std::vector<TrialId>& trials);

}  // namespace det::db
