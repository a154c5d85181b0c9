#include "master/db/queries/queries_log.h"

#include <algorithm>

// Filter of read_logs(). The parameters are those of `params` below, in order.
#define DET_LOG_FILTER                                                                                     \
  "SELECT id, task_id, allocation_id, agent_id, rank, time, level, stdtype, source, log FROM task_logs"    \
  " WHERE task_id = $1 AND id > $2 AND (cardinality($3::text[]) = 0 OR allocation_id = ANY ($3))"          \
  " AND (cardinality($4::text[]) = 0 OR agent_id = ANY ($4)) AND (cardinality($5::text[]) = 0 OR level = " \
  "ANY ($5))"                                                                                              \
  " AND (cardinality($6::text[]) = 0 OR stdtype = ANY ($6)) AND (cardinality($7::text[]) = 0 OR source = " \
  "ANY ($7))"                                                                                              \
  " AND (cardinality($8::bigint[]) = 0 OR rank = ANY ($8)) AND ($9::timestamptz IS NULL OR time < $9)"     \
  " AND ($10::timestamptz IS NULL OR time > $10)"                                                          \
  " AND CASE WHEN $11 = '' THEN true WHEN $12 THEN log_text(log) ~ $11 ELSE position(convert_to($11, "     \
  "'UTF8') IN log) > 0 END"

namespace det::db {

Result<std::vector<LogRow>> read_logs(Pool& pool, const LogFilter& filter) {
  const Params params(filter.task, filter.after_id, filter.allocations, filter.agents, filter.levels,
                      filter.stdtypes, filter.sources, filter.ranks, filter.before, filter.after,
                      filter.search, filter.regex, std::clamp<std::int64_t>(filter.limit, 0, 10'000));
  const char* sql = filter.descending ? DET_LOG_FILTER " ORDER BY id DESC LIMIT $13"
                                      : DET_LOG_FILTER " ORDER BY id LIMIT $13";
  TRY_ASSIGN(const Rows rows, pool.with<Rows>([&](Connection& connection) -> Result<Rows> {
    // A regular expression can be expensive: bound its time.
    TRY(connection.script("BEGIN READ ONLY; SET LOCAL statement_timeout = 5000"));
    Result<Rows> found = connection.run(sql, params);
    connection.rollback();
    return found;
  }));
  std::vector<LogRow> out;
  for (int i = 0; i < rows.size(); ++i) {
    LogRow& row = out.emplace_back();
    rows[i].into(row.id, row.task, row.allocation, row.agent, row.rank, row.time, row.level, row.stdtype,
                 row.source, row.text);
  }
  return out;
}

Result<LogFields> log_fields(Pool& pool, const TaskId& task) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "SELECT coalesce(array_agg(DISTINCT allocation_id) FILTER (WHERE allocation_id <> ''), '{}'),"
          " coalesce(array_agg(DISTINCT agent_id) FILTER (WHERE agent_id <> ''), '{}'),"
          " coalesce(array_agg(DISTINCT stdtype) FILTER (WHERE stdtype <> ''), '{}'),"
          " coalesce(array_agg(DISTINCT source) FILTER (WHERE source <> ''), '{}'),"
          " coalesce(array_agg(DISTINCT rank::bigint) FILTER (WHERE rank >= 0), '{}')"
          " FROM task_logs WHERE task_id = $1",
          task));
  LogFields out;
  rows[0].into(out.allocations, out.agents, out.stdtypes, out.sources, out.ranks);
  return out;
}

Result<std::int64_t> forget_logs(Pool& pool, std::int64_t days) {
  // Tasks per transaction.
  constexpr int kAtOnce = 100;
  std::int64_t sum = 0;
  // Small batches keep the transactions short.
  for (;;) {
    TRY_ASSIGN(const Rows rows,
               pool.query("WITH over AS (SELECT task_id FROM"
                          " (SELECT t.task_id, t.ended AS at, coalesce((e.config #>> "
                          "'{retention_policy,log_retention_days}')::integer,"
                          " $1::integer) AS days FROM trials t JOIN experiments e ON e.id = t.experiment_id "
                          "WHERE t.ended IS NOT NULL"
                          " UNION ALL SELECT task_id, ended AS at, $1::integer FROM commands WHERE ended IS "
                          "NOT NULL) AS task"
                          " WHERE days >= 0 AND at < now() - make_interval(days => days) AND EXISTS"
                          " (SELECT FROM task_logs l WHERE l.task_id = task.task_id) LIMIT $2),"
                          " gone AS (DELETE FROM task_logs WHERE task_id IN (SELECT task_id FROM over))"
                          " SELECT count(*) FROM over",
                          days, kAtOnce));
    std::int64_t found = 0;
    rows[0].into(found);
    sum += found;
    if (found < kAtOnce) return sum;
  }
}

}  // namespace det::db
