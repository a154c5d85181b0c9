#include "master/db/queries/queries_allocation.h"

#include "master/db/store/allocation_parts.h"

namespace det::db {

Result<std::vector<AllocationRow>> list_allocations(Pool& pool, TrialId trial) {
  // Commands have negative trial ids in the core.
  TRY_ASSIGN(
      const Rows rows,
      pool.query("SELECT id, run, state, parts, pool, started, ended, exit_kind, exit_message,"
                 " exit_code FROM allocations WHERE trial_id = $1 OR command_id = -$1 ORDER BY run DESC, id",
                 trial));
  std::vector<AllocationRow> out;
  for (int i = 0; i < rows.size(); ++i) {
    AllocationRow& row = out.emplace_back();
    std::string parts;
    rows[i].into(row.id, row.run, row.state, parts, row.pool, row.started, row.ended, row.exit_kind,
                 row.exit_message, row.exit_code);
    TRY_ASSIGN(row.parts, read_parts(parts));
  }
  return out;
}

Result<bool> held_by(Pool& pool, const AllocationId& allocation, const AgentId& agent) {
  // Parts of terminated allocations keep their agents.
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT EXISTS (SELECT FROM allocations, json_array_elements(parts) part"
                        " WHERE id = $1 AND part->>'agent' = $2)",
                        allocation, agent));
  return rows[0].next<bool>();
}

Result<std::vector<std::pair<TrialId, WallTime>>> live_since(Pool& pool, const std::string& resource_pool) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT coalesce(trial_id, -command_id), started FROM allocations"
                                         " WHERE state <> 'TERMINATED' AND pool = $1",
                                         resource_pool));
  std::vector<std::pair<TrialId, WallTime>> live(static_cast<std::size_t>(rows.size()));
  for (int i = 0; i < rows.size(); ++i)
    rows[i].into(live[static_cast<std::size_t>(i)].first, live[static_cast<std::size_t>(i)].second);
  return live;
}

Result<std::vector<double>> recent_run_lengths(Pool& pool, const std::string& resource_pool, int count) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query(
          "SELECT extract(epoch FROM ended - started)::float8 FROM allocations"
          " WHERE pool = $1 AND ended IS NOT NULL AND trial_id IS NOT NULL ORDER BY ended DESC LIMIT $2",
          resource_pool, static_cast<std::int64_t>(count)));
  std::vector<double> lengths;
  for (int i = 0; i < rows.size(); ++i) lengths.push_back(rows[i].next<double>());
  return lengths;
}

}  // namespace det::db
