#include "master/db/queries/usage.h"

namespace det::db {
namespace {

/// Allocations in [$1, $2), including those of deleted experiments.
const std::string kUsage =
    "SELECT coalesce(e.id, 0) AS experiment_id, coalesce(e.owner_id, c.owner_id) AS owner_id,"
    " coalesce(e.labels, '{}') AS labels, a.pool, a.slots, a.started, a.ended,"
    " a.workspace_id, a.id AS allocation_id,"
    " coalesce((SELECT i.kind FROM interactive_tasks i WHERE i.task_id = c.task_id),"
    "  CASE WHEN c.id IS NULL THEN 'TRIAL' ELSE 'COMMAND' END) AS task_type"
    " FROM allocations a LEFT JOIN trials t ON t.id = a.trial_id"
    " LEFT JOIN experiments e ON e.id = t.experiment_id"
    " LEFT JOIN commands c ON c.id = a.command_id"
    " WHERE tstzrange(a.started, greatest(a.started, coalesce(a.ended, 'infinity'))) && tstzrange($1, $2)"
    " UNION ALL SELECT experiment_id, owner_id, labels, pool, slots, started, ended, workspace_id,"
    " allocation_id, CASE WHEN experiment_id = 0 THEN 'COMMAND' ELSE 'TRIAL' END FROM past_usage WHERE "
    "tstzrange(started, ended) && tstzrange($1, $2)";
/// $3: visible workspaces.
const std::string kUsageSeen = " WHERE ($3::bigint[] IS NULL OR workspace_id = ANY ($3))";
constexpr std::size_t kMaxEntries = 100'000;

}  // namespace

Result<std::vector<UsageEntry>> usage_entries(Pool& pool, WallTime from, WallTime to, const Visible& visible,
                                              bool without_slots) {
  using U = UsageEntry;
  static const Columns<U> kColumns(
      column<&U::allocation>("used.allocation_id"),
      column<&U::workspace>("coalesce((SELECT w.name FROM workspaces w WHERE w.id = used.workspace_id), '')"),
      column<&U::task_type>("used.task_type"), column<&U::experiment>("used.experiment_id"),
      column<&U::user>("used.owner_id"), column<&U::username>("u.name"), column<&U::labels>("used.labels"),
      column<&U::pool>("used.pool"), column<&U::slots>("used.slots"), column<&U::started>("used.started"),
      column<&U::ended>("used.ended"),
      column<&U::seconds>(
          "extract(epoch FROM least(coalesce(used.ended, now()), $2) - greatest(used.started, $1))::float8"));
  static const std::string sql =
      "WITH used AS (" + kUsage + ") SELECT " + kColumns.sql() +
      " FROM used JOIN users u ON u.id = used.owner_id" + kUsageSeen +
      " AND greatest(used.started, $1) < least(coalesce(used.ended, now()), $2)"
      " AND (used.slots > 0 OR $5) ORDER BY used.started, used.experiment_id LIMIT $4";
  // LIMIT is one above the bound, so a full result means that there are more.
  TRY_ASSIGN(auto entries,
             kColumns.read(pool.query(sql, from, to, visible, std::int64_t{kMaxEntries} + 1, without_slots)));
  if (entries.size() > kMaxEntries)
    return fail(Code::kResourceExhausted,
                "more than 100000 allocations held slots in that time; ask for less of it");
  return entries;
}

Result<std::vector<CapacityEntry>> capacity_entries(Pool& pool, WallTime from, WallTime to) {
  using C = CapacityEntry;
  static const Columns<C> kColumns(
      column<&C::agent>("agent_id"), column<&C::pool>("pool"), column<&C::slots>("slots"),
      column<&C::started>("started"), column<&C::ended>("ended"),
      column<&C::seconds>(
          "extract(epoch FROM least(coalesce(ended, now()), $2) - greatest(started, $1))::float8"));
  static const std::string sql = kColumns.select(
      " FROM capacity WHERE tstzrange(started, ended) && tstzrange($1, $2)"
      " AND greatest(started, $1) < least(coalesce(ended, now()), $2) ORDER BY started, agent_id LIMIT $3");
  TRY_ASSIGN(auto entries, kColumns.read(pool.query(sql, from, to, std::int64_t{kMaxEntries} + 1)));
  if (entries.size() > kMaxEntries)
    return fail(Code::kResourceExhausted,
                "agents came and went more than 100000 times; ask for less of that time");
  return entries;
}

Result<std::vector<UsagePeriod>> usage_periods(Pool& pool, const std::string& first, const std::string& last,
                                               bool monthly, const Visible& visible) {
  // $1 and $2 are timestamps, to use the index. Periods are clipped to them, so that days outside do not
  // count.
  static const std::string sql =
      "WITH used AS (" + kUsage +
      "), seen AS (SELECT used.*, u.name AS username FROM used JOIN users u ON u.id = used.owner_id" +
      kUsageSeen +
      " AND used.slots > 0),"
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
  TRY_ASSIGN(const Rows rows, pool.query(sql, from, to, visible, monthly ? "month" : "day"));
  std::vector<UsagePeriod> periods;
  for (Rows::Row row : rows) {
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
