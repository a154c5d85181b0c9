#include "master/db/queries/allocations.h"

#include "master/db/store/tables.h"

namespace det::db {

TaskKey next_task(Rows::Row& row) {
  const auto trial = row.next<std::optional<TrialId>>();
  const auto command = row.next<std::optional<CommandId>>();
  return trial ? TaskKey(*trial) : TaskKey(command.value_or(CommandId()));
}

Result<std::vector<AllocationRow>> list_allocations(Pool& pool, TaskKey task) {
  using A = AllocationRow;
  static const Columns<A> kColumns(
      column<&A::id>("id"), column<&A::run>("run"), column<&A::state>("state"), column<&A::parts>("parts"),
      column<&A::pool>("pool"), column<&A::started>("started"), column<&A::ended>("ended"),
      column<&A::exit_kind>("exit_kind"), column<&A::exit_message>("exit_message"),
      column<&A::exit_code>("exit_code"));
  static const std::string sql = kColumns.select(
      " FROM allocations WHERE trial_id = $1 OR command_id = $2 ORDER BY run DESC, started DESC, id");
  return kColumns.read(pool.query(sql, task.as<TrialId>(), task.as<CommandId>()));
}

Result<bool> held_by(Pool& pool, const AllocationId& allocation, const AgentId& agent) {
  // Parts of terminated allocations keep their agents.
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT EXISTS (SELECT FROM allocations, json_array_elements(parts) part"
                        " WHERE id = $1 AND part->>'agent' = $2)",
                        allocation, agent));
  return rows[0].next<bool>();
}

Result<std::vector<std::pair<TaskKey, WallTime>>> live_since(Pool& pool, const std::string& resource_pool) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT trial_id, command_id, started FROM allocations"
                                         " WHERE state <> 'TERMINATED' AND pool = $1",
                                         resource_pool));
  std::vector<std::pair<TaskKey, WallTime>> live;
  for (Rows::Row row : rows) {
    auto& [task, started] = live.emplace_back();
    task = next_task(row);
    row.into(started);
  }
  return live;
}

Result<std::vector<double>> recent_run_lengths(Pool& pool, const std::string& resource_pool, int count) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query("SELECT extract(epoch FROM ended - started)::float8 FROM allocations"
                 " WHERE pool = $1 AND ended IS NOT NULL AND trial_id IS NOT NULL AND id NOT LIKE '%-build'"
                 " ORDER BY ended DESC LIMIT $2",
                 resource_pool, count));
  return rows.column<double>();
}

}  // namespace det::db
