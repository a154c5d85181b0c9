#include "master/db/queries/logs.h"

#include <algorithm>
#include <map>

#include "master/db/store/locks.h"

namespace det::db {
namespace {

/// Lines of a filter; follows the columns of a SELECT. $13 is the maximum number of lines.
const std::string kLogTables =
    " FROM task_logs WHERE task_id = $1 AND id > $2"
    " AND (cardinality($3::text[]) = 0 OR allocation_id = ANY ($3))"
    " AND (cardinality($4::text[]) = 0 OR agent_id = ANY ($4))"
    " AND (cardinality($5::text[]) = 0 OR level = ANY ($5))"
    " AND (cardinality($6::text[]) = 0 OR stdtype = ANY ($6))"
    " AND (cardinality($7::text[]) = 0 OR source = ANY ($7))"
    " AND (cardinality($8::bigint[]) = 0 OR rank = ANY ($8))"
    " AND ($9::timestamptz IS NULL OR time < $9) AND ($10::timestamptz IS NULL OR time > $10)"
    " AND CASE WHEN $11 = '' THEN true WHEN $12 THEN log_text(log) ~ $11"
    " ELSE position(convert_to($11, 'UTF8') IN log) > 0 END AND ($14 = 0 OR id < $14) ORDER BY id";

Params log_params(const LogFilter& filter) {
  return Params(filter.task, filter.after_id, filter.allocations, filter.agents, filter.levels,
                filter.stdtypes, filter.sources, filter.ranks, filter.before, filter.after, filter.search,
                filter.regex, std::clamp<std::int64_t>(filter.limit, 0, 10'000), filter.before_id);
}

Result<Rows> query_logs(Pool& pool, const std::string& sql, const Params& params) {
  return pool.with<Rows>([&](Connection& connection) -> Result<Rows> {
    // A regular expression can be expensive: bound its time.
    TRY(connection.script("BEGIN READ ONLY; SET LOCAL statement_timeout = 5000"));
    return connection.run(sql, params);
  });
}

}  // namespace

Result<std::vector<LogRow>> read_logs(Pool& pool, const LogFilter& filter) {
  static const Columns<LogRow> kColumns(
      column<&LogRow::id>("id"), column<&LogRow::task>("task_id"),
      column<&LogRow::allocation>("allocation_id"), column<&LogRow::agent>("agent_id"),
      column<&LogRow::rank>("rank"), column<&LogRow::time>("time"), column<&LogRow::level>("level"),
      column<&LogRow::stdtype>("stdtype"), column<&LogRow::source>("source"), column<&LogRow::text>("log"));
  const std::string way = filter.descending ? " DESC" : "";
  Params params = log_params(filter);
  params.add(filter.bytes);
  // octet_length() of bytea is known without reading the value.
  return kColumns.read(query_logs(pool,
                                  "SELECT " + kColumns.sql() +
                                      " FROM (SELECT *, sum(octet_length(log)) OVER (ORDER BY id" + way +
                                      ") - octet_length(log) AS ahead FROM (SELECT *" + kLogTables + way +
                                      " LIMIT $13) AS page) AS sized WHERE ahead < $15 ORDER BY id" + way,
                                  params));
}

Result<std::int64_t> tail_start(Pool& pool, const LogFilter& filter) {
  TRY_ASSIGN(const Rows rows, query_logs(pool,
                                         "SELECT coalesce(min(id), 0) FROM (SELECT id" + kLogTables +
                                             " DESC LIMIT $13) AS tail",
                                         log_params(filter)));
  return rows[0].next<std::int64_t>();
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

/// Deletes the logs of at most `limit` tasks. Returns how many.
static Result<std::int64_t> forget_some(Pool& pool, std::int64_t days, std::int64_t limit) {
  constexpr const char* kForget =
      "WITH over AS (SELECT task_id, trial_id, command_id FROM"
      " (SELECT t.task_id, t.id AS trial_id, NULL::bigint AS command_id, t.ended AS at,"
      " coalesce(r.days, (e.config #>> '{retention_policy,log_retention_days}')::integer,"
      " $1::integer) AS days FROM trials t JOIN experiments e ON e.id = t.experiment_id"
      " LEFT JOIN log_retention r ON r.trial_id = t.id"
      " WHERE t.ended IS NOT NULL UNION ALL"
      " SELECT task_id, NULL, id, ended, $1::integer FROM commands WHERE ended IS NOT"
      " NULL) AS task"
      " WHERE days >= 0 AND at < now() - make_interval(days => days) AND EXISTS"
      " (SELECT FROM task_logs l WHERE l.task_id = task.task_id) LIMIT $2),"
      " gone AS (DELETE FROM task_logs WHERE task_id IN (SELECT task_id FROM over)),"
      // The numbers of the lines stay: a repeated line is still recognized.
      " freed AS (UPDATE log_positions p SET bytes = 0 FROM over JOIN allocations a"
      " ON a.trial_id = over.trial_id OR a.command_id = over.command_id"
      " WHERE p.allocation_id = a.id)"
      " SELECT count(*) FROM over";
  std::int64_t found = 0;
  const Status done = pool.in_transaction([&](Connection& connection) -> Status {
    TRY(connection.script(kNoTimeout));
    TRY_ASSIGN(const Rows rows, connection.query(kForget, days, limit));
    rows[0].into(found);
    return {};
  });
  TRY(done);
  return found;
}

Result<std::int64_t> forget_logs(Pool& pool, std::int64_t days) {
  // Tasks per transaction.
  constexpr std::int64_t kAtOnce = 100;
  std::int64_t sum = 0;
  // Small batches keep the transactions short.
  for (;;) {
    TRY_ASSIGN(const std::int64_t found, forget_some(pool, days, kAtOnce));
    sum += found;
    if (found < kAtOnce) return sum;
  }
}

static Status set_retention(Pool& pool, const char* which, std::int64_t id, std::int64_t days) {
  TRY(pool.query(std::string("INSERT INTO log_retention (trial_id, days) SELECT id, $2 FROM trials WHERE ") +
                     which + " = $1 ON CONFLICT (trial_id) DO UPDATE SET days = EXCLUDED.days",
                 id, days));
  return {};
}

Status set_log_retention(Pool& pool, TrialId trial, std::int64_t days) {
  return set_retention(pool, "id", trial.value, days);
}
Status set_log_retention(Pool& pool, ExperimentId experiment, std::int64_t days) {
  return set_retention(pool, "experiment_id", experiment.value, days);
}

Result<std::optional<std::int64_t>> remaining_log_days(Pool& pool, TrialId trial, std::int64_t days) {
  // Rounded up, so that 0 days are left only when the log is deleted next.
  return value_of<std::optional<std::int64_t>>(
      pool.query("SELECT CASE WHEN task.days < 0 THEN -1 WHEN task.ended IS NOT NULL THEN greatest(0, "
                 "ceil(extract(epoch FROM"
                 "  task.ended + make_interval(days => task.days) - now()) / 86400))::bigint END"
                 " FROM (SELECT t.ended, coalesce(r.days,"
                 "  (e.config #>> '{retention_policy,log_retention_days}')::integer, $2::integer) AS days"
                 "  FROM trials t JOIN experiments e ON e.id = t.experiment_id"
                 "  LEFT JOIN log_retention r ON r.trial_id = t.id WHERE t.id = $1) AS task",
                 trial, days),
      "trial " + std::to_string(trial.value));
}

Status append_lines(Pool& pool, const TaskId& task, const std::vector<SentLine>& lines) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    const Statement lock = lock_tasks({task.value});
    TRY(connection.run(lock.sql, lock.params));
    std::map<AllocationId, std::int64_t> bytes;
    for (const SentLine& line : lines) {
      TRY(connection.query(
          "INSERT INTO task_logs (task_id, allocation_id, agent_id, rank, time, level, stdtype, source,"
          " log) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
          task, line.allocation, line.agent, line.rank, line.time, line.level, line.stdtype, line.source,
          Bytes{line.text}));
      bytes[line.allocation] += static_cast<std::int64_t>(line.text.size());
    }
    // Counted for quotas. These lines have no numbers.
    for (const auto& [allocation, added] : bytes) {
      TRY(connection.query(
          "INSERT INTO log_positions (allocation_id, agent_id, next_line, bytes) VALUES ($1, '', 1, $2)"
          " ON CONFLICT (allocation_id, agent_id) DO UPDATE SET bytes = log_positions.bytes + $2",
          allocation, added));
    }
    return {};
  });
}

}  // namespace det::db
