#include "master/db/accounts/quotas.h"

#include "master/db/store/tables.h"

namespace det::db {
namespace {

// "o" is a table with the columns of the owner: owner_id and workspace_id.
constexpr const char* kQuotaOwned =
    "CASE q.scope WHEN 'user' THEN o.owner_id ELSE o.workspace_id END = q.subject_id";

const std::string kQuotaExperiments =
    "(SELECT e.id, e.owner_id, p.workspace_id FROM experiments e JOIN projects p ON p.id = e.project_id) o";

/// Number of metrics in the newest report of each group of a trial "t". Skips from group to group in the
/// index, however many reports there are.
const std::string kSeriesOfTrial =
    "(WITH RECURSIVE g AS ((SELECT grp FROM metrics WHERE trial_id = t.id AND NOT archived ORDER BY grp "
    "LIMIT 1)"
    " UNION ALL SELECT (SELECT m.grp FROM metrics m WHERE m.trial_id = t.id AND NOT m.archived AND m.grp > "
    "g.grp"
    " ORDER BY m.grp LIMIT 1) FROM g WHERE g.grp IS NOT NULL)"
    " SELECT count(*) FROM g, LATERAL (SELECT m.metrics FROM metrics m WHERE m.trial_id = t.id AND m.grp = "
    "g.grp"
    " AND NOT m.archived ORDER BY m.steps_completed DESC LIMIT 1) newest, json_object_keys(newest.metrics))";

std::string quota_use() {
  const std::string owned = std::string(" WHERE ") + kQuotaOwned;
  return "CASE q.resource"
         " WHEN 'checkpoint_bytes' THEN (SELECT sum(s.checkpoint_bytes) FROM " +
         kQuotaExperiments + " JOIN experiment_summaries s ON s.experiment_id = o.id" + owned +
         ") WHEN 'log_bytes' THEN (SELECT sum(bytes) FROM (SELECT sum(l.bytes) AS bytes FROM " +
         kQuotaExperiments +
         " JOIN trials t ON t.experiment_id = o.id JOIN allocations a ON a.trial_id = t.id"
         " JOIN log_positions l ON l.allocation_id = a.id" +
         owned +
         " UNION ALL SELECT sum(l.bytes) FROM commands o JOIN allocations a ON a.command_id = o.id"
         " JOIN log_positions l ON l.allocation_id = a.id" +
         owned + ") each_kind) WHEN 'metric_series' THEN (SELECT sum(" + kSeriesOfTrial + ") FROM " +
         kQuotaExperiments + " JOIN trials t ON t.experiment_id = o.id" + owned + ") END";
}

}  // namespace

Result<std::vector<QuotaRow>> list_quotas(Pool& pool) {
  static const std::string sql =
      "SELECT q.scope, q.subject_id, q.resource, q.amount, coalesce(u.name, w.name, ''), least(coalesce(" +
      quota_use() +
      ", 0), 9223372036854775807)::bigint FROM quotas q LEFT JOIN users u ON q.scope = 'user' AND u.id = "
      "q.subject_id"
      " LEFT JOIN workspaces w ON q.scope = 'workspace' AND w.id = q.subject_id ORDER BY 1, 2, 3";
  TRY_ASSIGN(const Rows rows, pool.query(sql));
  std::vector<QuotaRow> all;
  for (Rows::Row row : rows) {
    QuotaRow& one = all.emplace_back();
    TRY(read_quota(row, one.quota));
    row.into(one.name, one.used);
  }
  return all;
}

Result<TaskOwner> owner_of(Pool& pool, const AllocationId& allocation) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT coalesce(e.owner_id, c.owner_id), coalesce(p.workspace_id, c.workspace_id)"
                        " FROM allocations a LEFT JOIN trials t ON t.id = a.trial_id"
                        " LEFT JOIN experiments e ON e.id = t.experiment_id"
                        " LEFT JOIN projects p ON p.id = e.project_id"
                        " LEFT JOIN commands c ON c.id = a.command_id WHERE a.id = $1",
                        allocation));
  if (rows.empty()) return fail(Code::kNotFound, "allocation " + allocation.value + " not found");
  TaskOwner owner;
  rows[0].into(owner.user, owner.workspace);
  return owner;
}

Result<LiveExperiments> live_experiments(Pool& pool, std::int64_t project) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT p.workspace_id, e.id FROM projects p LEFT JOIN experiments e"
                                         " ON e.project_id = p.id AND e.ended IS NULL WHERE p.id = $1",
                                         project));
  LiveExperiments live;
  for (Rows::Row row : rows) {
    live.workspace = row.next<std::int64_t>();
    if (const auto id = row.next<std::optional<std::int64_t>>()) live.ids.emplace_back(*id);
  }
  return live;
}

}  // namespace det::db
