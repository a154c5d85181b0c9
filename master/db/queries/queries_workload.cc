// Implementation of list_workloads() and list_reports() (queries_trial.h).
#include "master/db/queries/queries_trial.h"
#include "master/db/queries/rows_checkpoint.h"

// $1 trial, $2 groups, $3 include checkpoints, $4 include deleted ones. `place` orders equal steps.
#define DET_WORKLOADS                                                                                       \
  "WITH w AS (SELECT m.steps_completed AS steps, CASE m.grp WHEN 'training' THEN 0 WHEN 'validation' THEN " \
  "1 ELSE 2 END"                                                                                            \
  " AS place, m.grp AS name, m.metrics, m.reported, m.searcher_metric FROM metrics m"                       \
  " WHERE m.trial_id = $1 AND m.grp = ANY ($2) AND NOT m.archived"                                          \
  " UNION ALL SELECT c.steps_completed, 3, c.uuid, NULL, c.reported, NULL FROM checkpoints c"               \
  " WHERE c.trial_id = $1 AND $3 AND ($4 OR c.state NOT IN ('DELETED', 'PARTIALLY_DELETED')))"

namespace det::db {
namespace {

/// Fills in the checkpoints, of which the rows have only the uuid so far.
Status add_checkpoints(Pool& pool, std::vector<Workload>& rows) {
  std::vector<std::string> uuids;
  for (const Workload& row : rows)
    if (row.kind == Workload::Kind::kCheckpoint) uuids.push_back(row.checkpoint.uuid.value);
  if (uuids.empty()) return {};
  TRY_ASSIGN(const Rows found,
             pool.query("SELECT " DET_CHECKPOINT_COLUMNS " FROM checkpoints c" DET_CHECKPOINT_JOINS
                        " WHERE c.uuid = ANY ($1)",
                        uuids));
  std::map<CheckpointId, CheckpointRow> by_uuid;
  for (int i = 0; i < found.size(); ++i) {
    Rows::Row row = found[i];
    CheckpointRow checkpoint = read_checkpoint(row);
    by_uuid.emplace(checkpoint.uuid, std::move(checkpoint));
  }
  for (Workload& row : rows)
    if (auto at = by_uuid.find(row.checkpoint.uuid); at != by_uuid.end()) row.checkpoint = at->second;
  return {};
}

}  // namespace

Result<std::vector<MetricReport>> list_reports(Pool& pool, const ReportFilter& filter) {
  const std::string& after = filter.after_group.empty() ? filter.group : filter.after_group;
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT run, grp, steps_completed, reported, metrics FROM metrics"
                        " WHERE trial_id = $1 AND NOT archived AND (grp, steps_completed) > ($2, $3)"
                        " AND ($4 = '' OR grp = $4) ORDER BY grp, steps_completed LIMIT $5",
                        filter.trial, after, filter.after_steps, filter.group, filter.limit));
  std::vector<MetricReport> reports;
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    MetricReport& out = reports.emplace_back();
    row.into(out.run, out.point.group, out.point.steps_completed, out.point.reported, out.point.metrics);
  }
  return reports;
}

Result<Page<Workload>> list_workloads(Pool& pool, const WorkloadFilter& filter) {
  // Same parameters for the count and the page.
  Params params(filter.trial, filter.groups, filter.checkpoints, filter.deleted_checkpoints);
  TRY_ASSIGN(const Rows counted, pool.run(DET_WORKLOADS " SELECT count(*) FROM w", params));
  Page<Workload> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(filter.window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  params.add(span.first);
  params.add(span.count);
  TRY_ASSIGN(
      const Rows rows,
      pool.run(filter.window.descending
                   ? DET_WORKLOADS " SELECT steps, place, name, metrics, reported, searcher_metric FROM w"
                                   " ORDER BY steps DESC, place DESC, name DESC OFFSET $5 LIMIT $6"
                   : DET_WORKLOADS " SELECT steps, place, name, metrics, reported, searcher_metric FROM w"
                                   " ORDER BY steps, place, name OFFSET $5 LIMIT $6",
               params));
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    Workload& out = page.rows.emplace_back();
    const auto steps = row.next<std::int64_t>();
    if (row.next<std::int64_t>() == 3) {
      out.kind = Workload::Kind::kCheckpoint;
      row.into(out.checkpoint.uuid);
      continue;
    }
    out.metrics.steps_completed = steps;
    row.into(out.metrics.group, out.metrics.metrics, out.metrics.reported, out.metrics.searcher_metric);
  }
  TRY(add_checkpoints(pool, page.rows));
  return page;
}

}  // namespace det::db
