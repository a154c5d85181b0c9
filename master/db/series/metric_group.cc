#include "master/db/series/metric_group.h"

#include <algorithm>

#include "common/base/log.h"
#include "master/db/pg/pool.h"

namespace det::db {
namespace {

// Rows per query: bounds the memory of one result.
constexpr std::int64_t kPage = 50'000;

/// Returns the query of all chunks, ordered because columns accept only increasing steps.
Sql chunks_of(Detail detail) {
  switch (detail) {
    case Detail::kOutline:
      return "SELECT last_steps, outline FROM metric_chunks WHERE trial_id = $1 AND grp = $2 ORDER BY"
             " first_steps";
    case Detail::kExtremes:
      return "SELECT last_steps, extremes FROM metric_chunks WHERE trial_id = $1 AND grp = $2 ORDER BY"
             " first_steps";
    default:
      return "SELECT last_steps, points FROM metric_chunks WHERE trial_id = $1 AND grp = $2 ORDER BY"
             " first_steps";
  }
}

Status unpack_all(Pool& pool, const GroupNow& now, Detail detail, MetricGroup& group) {
  TRY_ASSIGN(const Rows rows, pool.query(chunks_of(detail), now.trial, now.group));
  for (Rows::Row row : rows) {
    std::string bytes;
    row.into(group.newest, bytes);
    TRY(detail == Detail::kWhole ? unpack_points(bytes, group.columns)
                                 : unpack_extremes(bytes, group.columns));
    group.rows += kChunkRows;
  }
  return {};
}

Status unpack_stretch(Pool& pool, const GroupNow& now, MetricGroup& group) {
  const Look look = group.look;
  // One statement, one snapshot: the end of the packed range must match the chunks, because rows behind it
  // are read separately when the query extends beyond it.
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "SELECT packed.last, c.first_steps, c.last_steps, c.coarse, CASE WHEN c.coarse THEN c.extremes ELSE"
          " c.points END FROM (SELECT max(last_steps) AS last FROM metric_chunks WHERE trial_id = $1 AND grp "
          "="
          " $2) packed LEFT JOIN (SELECT *, inside AND count(*) FILTER (WHERE inside) OVER () >= $5 AS coarse"
          " FROM (SELECT first_steps, last_steps, extremes, points, first_steps >= $3 AND last_steps <= $4 AS"
          " inside FROM metric_chunks WHERE trial_id = $1 AND grp = $2 AND last_steps >= $3 AND first_steps "
          "<="
          " $4) touched) c ON true ORDER BY c.first_steps",
          now.trial, now.group, look.first, look.last, look.fewest_chunks));
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    const auto packed = row.next<std::optional<std::int64_t>>(),
               first = row.next<std::optional<std::int64_t>>(),
               last = row.next<std::optional<std::int64_t>>();
    const auto coarse = row.next<std::optional<bool>>();
    const auto bytes = row.next<std::optional<std::string>>();
    // Chunks were dropped meanwhile: read rows only.
    if (!packed) return {};
    if (i == 0) {
      group.newest = *packed;
      // The first chunk may begin below the query: its points are complete, too.
      group.begins = std::min(look.first, first.value_or(look.first));
      if (look.last <= *packed) group.ends = look.last;
    }
    if (!bytes) return {};
    TRY(*coarse ? unpack_extremes(*bytes, group.columns) : unpack_points(*bytes, group.columns));
    group.mixed = group.mixed || *coarse;
    if (!group.grows()) group.ends = std::max(look.last, *last);
    group.rows += kChunkRows;
  }
  return {};
}

/// Reads packed chunks into an empty group. On malformed chunks, deletes them and leaves the group empty, so
/// that the caller reads the rows; they are packed again later.
Status unpack(Pool& pool, const GroupNow& now, Detail detail, MetricGroup& group) {
  const MetricGroup empty = group;
  Status status =
      detail == Detail::kStretch ? unpack_stretch(pool, now, group) : unpack_all(pool, now, detail, group);
  for (const auto& [name, column] : group.columns) group.points += column.size();
  if (status || status.error().code != Code::kDataLoss) return status;
  group = empty;
  log::warn("packed metrics are not readable; reading their rows",
            {{"trial", now.trial}, {"group", now.group}, {"reason", status.error().message}});
  return pool.in_transaction(
      [&](Connection& connection) { return forget_chunks(connection, now.trial, now.group); });
}

}  // namespace

Status extend(Pool& pool, const GroupNow& now, Detail detail, MetricGroup& group) {
  if (group.newest == INT64_MIN && now.chunks > 0) TRY(unpack(pool, now, detail, group));
  if (!group.grows()) return {};
  SeriesPoint point;
  std::string text;
  // Paging by step instead of OFFSET lets the index find each page.
  for (std::int64_t got = kPage; got == kPage;) {
    TRY_ASSIGN(
        const Rows rows,
        pool.query("SELECT steps_completed, reported, metrics FROM metrics WHERE trial_id = $1 AND grp = $2"
                   " AND NOT archived AND steps_completed > $3 ORDER BY steps_completed LIMIT $4",
                   now.trial, now.group, group.newest, kPage));
    got = rows.size();
    for (Rows::Row row : rows) {
      row.into(point.steps_completed, point.reported, text);
      each_number(text, [&](const std::string& name, double value) {
        point.value = value;
        group.columns[name].append(point);
        ++group.points;
      });
      group.newest = point.steps_completed;
      ++group.rows;
    }
  }
  return {};
}

}  // namespace det::db
