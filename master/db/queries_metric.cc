#include "master/db/queries_metric.h"

#include <algorithm>

#include "master/db/rows_metric.h"

#define DET_RANGE                                                                                          \
  " FROM metrics m WHERE m.trial_id = $1 AND m.grp = $2 AND NOT m.archived AND m.steps_completed BETWEEN " \
  "$3 AND $4"
#define DET_VALUES \
  "SELECT wanted.place, wanted.name, m.steps_completed, m.reported, " DET_JSON_DOUBLE("m.metrics -> wanted.name") \
  " AS value FROM unnest($5::text[]) WITH ORDINALITY AS wanted (name, place) CROSS JOIN metrics m"        \
  " WHERE m.trial_id = $1 AND m.grp = $2 AND NOT m.archived AND m.steps_completed BETWEEN $3 AND $4 OFFSET 0"

namespace det::db {
namespace {

struct Range {
  std::int64_t count = 0, first = 0, last = 0;
};

Result<Rows> read_points(Pool& pool, const SeriesRequest& request, const std::vector<std::string>& names,
                         const Range& range, std::int64_t most) {
  if (range.count <= most)
    return pool.query("SELECT place, name, steps_completed, value, reported FROM (" DET_VALUES
                      ") points"
                      " WHERE value IS NOT NULL ORDER BY place, steps_completed",
                      request.trial, request.group, request.first_steps, request.last_steps, names);
  // Arrays compare element by element: the smallest value with its smallest steps, the largest with its
  // largest.
  return pool.query(
      "WITH buckets AS (SELECT place, name, floor((steps_completed - $6)::float8 * $8 / ($7 - $6 + 1)) AS "
      "bucket,"
      "  min(ARRAY[value, steps_completed::float8]) AS low, max(ARRAY[value, steps_completed::float8]) AS "
      "high"
      "  FROM (" DET_VALUES
      ") points WHERE value <> 'NaN' GROUP BY place, name, bucket),"
      " chosen AS (SELECT place, name, low[1] AS value, low[2]::bigint AS steps FROM buckets"
      "  UNION SELECT place, name, high[1], high[2]::bigint FROM buckets)"
      " SELECT place, name, steps, value, m.reported FROM chosen JOIN metrics m ON m.trial_id = $1 AND m.grp "
      "= $2"
      " AND NOT m.archived AND m.steps_completed = steps ORDER BY place, steps",
      request.trial, request.group, request.first_steps, request.last_steps, names, range.first, range.last,
      static_cast<double>(most / 2));
}

}  // namespace

Result<std::vector<MetricName>> metric_names(Pool& pool, const std::vector<TrialId>& trials) {
  std::vector<std::int64_t> ids;
  for (TrialId trial : trials) ids.push_back(trial.value);
  // Groups are found by hopping over the index, so a million rows of one group cost one look-up.
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "SELECT DISTINCT g.grp, k.name FROM unnest($1::bigint[]) AS t (id) CROSS JOIN LATERAL ("
          " WITH RECURSIVE hop AS (SELECT min(m.grp) AS grp FROM metrics m WHERE m.trial_id = t.id AND NOT"
          " m.archived UNION ALL SELECT (SELECT min(m.grp) FROM metrics m WHERE m.trial_id = t.id AND NOT"
          " m.archived AND m.grp > hop.grp) FROM hop WHERE hop.grp IS NOT NULL)"
          " SELECT grp FROM hop WHERE grp IS NOT NULL) g CROSS JOIN LATERAL ("
          " SELECT json_object_keys(m.metrics) AS name FROM (SELECT metrics FROM metrics WHERE"
          " trial_id = t.id AND grp = g.grp AND NOT archived ORDER BY steps_completed DESC LIMIT 100) m) k"
          " ORDER BY g.grp, k.name",
          ids));
  std::vector<MetricName> out;
  for (int i = 0; i < rows.size(); ++i) {
    MetricName& name = out.emplace_back();
    rows[i].into(name.group, name.name);
  }
  return out;
}

Result<std::vector<Series>> metric_series(Pool& pool, const SeriesRequest& request) {
  std::vector<std::string> names = request.names;
  if (names.empty()) {
    TRY_ASSIGN(const auto all, metric_names(pool, {request.trial}));
    for (const MetricName& name : all)
      if (name.group == request.group) names.push_back(name.name);
  }
  TRY_ASSIGN(const Rows counted,
             pool.query("SELECT count(*), coalesce(min(m.steps_completed), 0), "
                        "coalesce(max(m.steps_completed), 0)" DET_RANGE,
                        request.trial, request.group, request.first_steps, request.last_steps));
  Range range;
  counted[0].into(range.count, range.first, range.last);
  std::vector<Series> out(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) out[i].name = names[i];
  if (range.count == 0 || names.empty()) return out;
  TRY_ASSIGN(const Rows rows,
             read_points(pool, request, names, range, std::clamp(request.max_datapoints, 2, 100'000)));
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    const auto place = static_cast<std::size_t>(row.next<std::int64_t>() - 1);
    row.next<std::string>();
    SeriesPoint& point = out[place].points.emplace_back();
    row.into(point.steps_completed, point.value, point.reported);
  }
  return out;
}

}  // namespace det::db
