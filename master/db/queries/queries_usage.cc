#include "master/db/queries/queries_usage.h"

/// Allocations that held slots in [$1, $2), including those of deleted experiments. $3 in DET_SEEN: visible
/// workspaces.
#define DET_USAGE                                                                                       \
  "SELECT coalesce(e.id, 0) AS experiment_id, coalesce(e.owner_id, c.owner_id) AS owner_id,"            \
  " coalesce(e.labels, '{}') AS labels, a.pool, a.slots, a.started, a.ended,"                           \
  " coalesce(p.workspace_id, c.workspace_id) AS workspace_id"                                           \
  " FROM allocations a LEFT JOIN trials t ON t.id = a.trial_id LEFT JOIN experiments e ON e.id = "      \
  "t.experiment_id"                                                                                     \
  " LEFT JOIN projects p ON p.id = e.project_id LEFT JOIN commands c ON c.id = a.command_id"            \
  " WHERE a.slots > 0 AND tstzrange(a.started, greatest(a.started, coalesce(a.ended, 'infinity'))) && " \
  "tstzrange($1, $2)"                                                                                   \
  " UNION ALL SELECT experiment_id, owner_id, labels, pool, slots, started, ended, workspace_id FROM "  \
  "past_usage"                                                                                          \
  " WHERE tstzrange(started, ended) && tstzrange($1, $2)"
#define DET_SEEN " WHERE ($3::bigint[] IS NULL OR workspace_id = ANY ($3))"

namespace det::db {
namespace {

constexpr std::int64_t kMostEntries = 100'000;

}  // namespace

Result<std::vector<UsageEntry>> usage_entries(Pool& pool, WallTime from, WallTime to,
                                              const UsageScope& scope) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "WITH used AS (" DET_USAGE ")"
          " SELECT used.experiment_id, used.owner_id, u.name, used.labels, used.pool, used.slots,"
          " used.started, used.ended,"
          " extract(epoch FROM least(coalesce(used.ended, now()), $2) - greatest(used.started, $1))::float8"
          " FROM used JOIN users u ON u.id = used.owner_id" DET_SEEN
          " AND greatest(used.started, $1) < least(coalesce(used.ended, now()), $2)"
          " ORDER BY used.started, used.experiment_id LIMIT $4",
          from, to, scope, kMostEntries + 1));
  if (rows.size() > kMostEntries)
    return fail(Code::kResourceExhausted,
                "more than 100000 allocations held slots in that time; ask for less of it");
  // LIMIT is one above the bound, so a full result means that there are more.
  std::vector<UsageEntry> entries(static_cast<std::size_t>(rows.size()));
  for (int i = 0; i < rows.size(); ++i) {
    UsageEntry& entry = entries[static_cast<std::size_t>(i)];
    rows[i].into(entry.experiment, entry.user, entry.username, entry.labels, entry.pool, entry.slots,
                 entry.started, entry.ended, entry.seconds);
  }
  return entries;
}

Result<std::vector<CapacityEntry>> capacity_entries(Pool& pool, WallTime from, WallTime to) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query("SELECT agent_id, pool, slots, started, ended,"
                 " extract(epoch FROM least(coalesce(ended, now()), $2) - greatest(started, $1))::float8"
                 " FROM capacity WHERE tstzrange(started, ended) && tstzrange($1, $2)"
                 " AND greatest(started, $1) < least(coalesce(ended, now()), $2)"
                 " ORDER BY started, agent_id LIMIT $3",
                 from, to, kMostEntries + 1));
  if (rows.size() > kMostEntries)
    return fail(Code::kResourceExhausted,
                "agents came and went more than 100000 times; ask for less of that time");
  std::vector<CapacityEntry> entries(static_cast<std::size_t>(rows.size()));
  for (int i = 0; i < rows.size(); ++i) {
    CapacityEntry& entry = entries[static_cast<std::size_t>(i)];
    rows[i].into(entry.agent, entry.pool, entry.slots, entry.started, entry.ended, entry.seconds);
  }
  return entries;
}

Result<std::vector<UsagePeriod>> usage_periods(Pool& pool, const std::string& first, const std::string& last,
                                               bool monthly, const UsageScope& scope) {
  // $1 and $2 are timestamps, to use the index. Periods are clipped to them, so that days outside do not
  // count.
  constexpr const char* kSql =
      "WITH used AS (" DET_USAGE
      "),"
      " seen AS (SELECT used.*, u.name AS username FROM used JOIN users u ON u.id = used.owner_id" DET_SEEN
      "),"
      " periods AS (SELECT greatest(p, $1) AS begun, least(p + ('1 ' || $4)::interval, $2) AS over"
      "   FROM generate_series(date_trunc($4, $1, 'UTC'), $2 - interval '1 microsecond', ('1 ' || "
      "$4)::interval) AS p),"
      " spent AS (SELECT p.begun, s.*, s.slots * extract(epoch FROM least(coalesce(s.ended, now()), p.over)"
      "   - greatest(s.started, p.begun))::float8 AS seconds FROM periods p JOIN seen s"
      "   ON greatest(s.started, p.begun) < least(coalesce(s.ended, now()), p.over)),"
      " sums AS (SELECT begun, 0 AS by, '' AS key, sum(seconds) AS seconds FROM spent GROUP BY begun"
      "   UNION ALL SELECT begun, 1, username, sum(seconds) FROM spent GROUP BY begun, username"
      "   UNION ALL SELECT begun, 2, label, sum(seconds) FROM spent CROSS JOIN unnest(labels) AS label"
      "     GROUP BY begun, label"
      "   UNION ALL SELECT begun, 3, pool, sum(seconds) FROM spent GROUP BY begun, pool"
      "   UNION ALL SELECT begun, 4, experiment_id::text, sum(seconds) FROM spent WHERE experiment_id <> 0"
      "     GROUP BY begun, experiment_id"
      "   UNION ALL SELECT p.begun, 5, c.pool, sum(c.slots * extract(epoch FROM least(coalesce(c.ended, "
      "now()), p.over)"
      "     - greatest(c.started, p.begun))::float8) FROM periods p JOIN capacity c ON greatest(c.started, "
      "p.begun)"
      "     < least(coalesce(c.ended, now()), p.over) GROUP BY p.begun, c.pool)"
      " SELECT to_char(date_trunc($4, p.begun, 'UTC') AT TIME ZONE 'UTC', 'YYYY-MM-DD'), s.by, s.key, "
      "s.seconds"
      " FROM periods p LEFT JOIN sums s ON s.begun = p.begun ORDER BY p.begun, s.by, s.key";
  TRY_ASSIGN(const Rows days, pool.query("SELECT $1::text::date::timestamp AT TIME ZONE 'UTC',"
                                         " ($2::text::date + 1)::timestamp AT TIME ZONE 'UTC'",
                                         first, last));
  WallTime from, to;
  days[0].into(from, to);
  TRY_ASSIGN(const Rows rows, pool.query(kSql, from, to, scope, monthly ? "month" : "day"));
  std::vector<UsagePeriod> periods;
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    const auto start = row.next<std::string>();
    if (periods.empty() || periods.back().start != start) periods.push_back({.start = start});
    UsagePeriod& period = periods.back();
    const auto by = row.next<std::optional<std::int32_t>>();
    const auto key = row.next<std::optional<std::string>>();
    const auto seconds = row.next<std::optional<double>>();
    // A period without usage has one row of nulls.
    if (!by) continue;
    // Indexed by the `by` column of the statement; 0 is the total.
    std::map<std::string, double>* const maps[] = {nullptr,         &period.by_user,       &period.by_label,
                                                   &period.by_pool, &period.by_experiment, &period.capacity};
    if (*by == 0) {
      period.total = *seconds;
    } else {
      (*maps[*by])[*key] = *seconds;
    }
  }
  return periods;
}

}  // namespace det::db
