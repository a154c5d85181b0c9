#include "master/db/queries_allocation.h"

namespace det::db {

Result<std::vector<AllocationRow>> list_allocations(Pool& pool, TrialId trial) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT id, run, state, agent_id, slots, pool, started, ended, exit_kind, exit_message,"
                        " exit_code FROM allocations WHERE trial_id = $1 ORDER BY run DESC, id",
                        trial));
  std::vector<AllocationRow> out;
  for (int i = 0; i < rows.size(); ++i) {
    AllocationRow& row = out.emplace_back();
    rows[i].into(row.id, row.run, row.state, row.agent, row.slots, row.pool, row.started, row.ended, row.exit_kind,
                 row.exit_message, row.exit_code);
  }
  return out;
}

}  // namespace det::db
