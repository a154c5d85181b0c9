#include "master/db/queries/queries_command.h"

#include "common/base/json.h"
#include "master/db/store/allocation_parts.h"
#include "master/db/store/rows.h"

// Columns in the order of read_command().
#define DET_COMMAND_COLUMNS                                                                               \
  "c.id, c.task_id, c.job_id, c.owner_id, c.workspace_id, c.state, c.config, c.context, c.resource_pool," \
  " c.priority, c.weight, c.max_slots, c.queue_position, c.submitted, c.ended, c.exit_kind, c.exit_code," \
  " c.exit_message"
// Columns in the order of read_command_row().
#define DET_COMMAND_ROWS                                                                                    \
  "SELECT " DET_COMMAND_COLUMNS                                                                             \
  ", u.name, u.display_name, (SELECT a.state FROM allocations a WHERE a.command_id = c.id) FROM commands c" \
  " JOIN users u ON u.id = c.owner_id"
// $1 visible workspaces, $2 workspace, $3 and $4 owners. With both owner lists empty every owner matches.
#define DET_COMMAND_FILTER                                                                                  \
  " WHERE ($1::bigint[] IS NULL OR c.workspace_id = ANY ($1)) AND ($2 = 0 OR c.workspace_id = $2)"          \
  " AND (cardinality($3::text[]) = 0 AND cardinality($4::bigint[]) = 0 OR u.name = ANY ($3) OR c.owner_id " \
  "= ANY ($4))"

namespace det::db {
namespace {

Result<core::Command> read_command(Rows::Row& row) {
  core::Command command;
  row.into(command.id, command.task, command.job_id, command.owner, command.workspace);
  command.state = read_state(row);
  const auto text = row.next<std::string>();
  // The limits exceed those of submission: any configuration that was stored must load again.
  const auto json = parse_json(text, {.bytes = 256 << 20, .depth = 200});
  auto config = json ? expconf::command_from_resolved(*json) : tl::unexpected(json.error());
  if (!config) {
    return fail(Code::kDataLoss, "the stored configuration of command " + command.task.value +
                                     " cannot be read: " + config.error().message);
  }
  command.config = std::make_shared<const expconf::CommandConfig>(std::move(*config));
  core::QueuePlace& queue = command.queue;
  row.into(command.code_archive, queue.pool, queue.priority, queue.weight, queue.max_slots, queue.position);
  row.into(command.submitted, command.ended);
  const auto kind = row.next<std::optional<std::string>>();
  const auto code = row.next<std::optional<std::int32_t>>();
  const auto message = row.next<std::optional<std::string>>();
  if (kind) command.exit = core::Exit{parse_exit_kind(*kind), code.value_or(0), message.value_or("")};
  return command;
}

Result<CommandRow> read_command_row(Rows::Row row) {
  CommandRow out;
  TRY_ASSIGN(out.command, read_command(row));
  row.into(out.username, out.display_name);
  out.live = read_allocation_state(row);
  // A terminated allocation holds no slots any more.
  if (out.live == core::AllocationState::kTerminated) out.live.reset();
  return out;
}

std::string order_by(const CommandFilter& filter) {
  const std::string down = filter.window.descending ? " DESC" : "";
  switch (filter.sort) {
    case CommandFilter::Sort::kId:
      return " ORDER BY c.task_id" + down;
    case CommandFilter::Sort::kDescription:
      return " ORDER BY c.description" + down + ", c.id" + down;
    case CommandFilter::Sort::kWorkspace:
      return " ORDER BY c.workspace_id" + down + ", c.id" + down;
    case CommandFilter::Sort::kStarted:
      break;
  }
  return " ORDER BY c.id" + down;
}

}  // namespace

Result<Page<CommandRow>> list_commands(Pool& pool, const CommandFilter& filter) {
  TRY_ASSIGN(
      const Rows counted,
      pool.query("SELECT count(*) FROM commands c JOIN users u ON u.id = c.owner_id" DET_COMMAND_FILTER,
                 filter.visible, filter.workspace, filter.users, filter.user_ids));
  Page<CommandRow> page;
  page.total = counted[0].next<std::int64_t>();
  const Span span = resolve(filter.window, page.total);
  page.start = span.first;
  if (span.count == 0) return page;
  const std::string sql = DET_COMMAND_ROWS DET_COMMAND_FILTER + order_by(filter) + " OFFSET $5 LIMIT $6";
  TRY_ASSIGN(const Rows rows, pool.query(sql.c_str(), filter.visible, filter.workspace, filter.users,
                                         filter.user_ids, span.first, span.count));
  for (int i = 0; i < rows.size(); ++i) {
    TRY_ASSIGN(CommandRow row, read_command_row(rows[i]));
    page.rows.push_back(std::move(row));
  }
  return page;
}

Result<CommandRow> get_command(Pool& pool, const TaskId& task) {
  TRY_ASSIGN(const Rows rows, pool.query(DET_COMMAND_ROWS " WHERE c.task_id = $1", task));
  if (rows.empty()) return fail(Code::kNotFound, "command " + task.value + " not found");
  return read_command_row(rows[0]);
}

Result<TaskFacts> get_task(Pool& pool, const TaskId& task) {
  // Commands have negative ids in the trial id space of the core.
  TRY_ASSIGN(
      const Rows rows,
      pool.query("SELECT id, state IN ('COMPLETED', 'CANCELED', 'ERROR') FROM trials WHERE task_id = $1"
                 " UNION ALL SELECT -id, ended IS NOT NULL FROM commands WHERE task_id = $1",
                 task));
  if (rows.empty()) return fail(Code::kNotFound, "task " + task.value + " not found");
  TaskFacts facts;
  rows[0].into(facts.holder, facts.ended);
  return facts;
}

Result<std::vector<core::Command>> load_commands(Connection& connection) {
  TRY_ASSIGN(const Rows rows, connection.query("SELECT " DET_COMMAND_COLUMNS
                                               " FROM commands c WHERE c.ended IS NULL ORDER BY c.id"));
  std::vector<core::Command> commands;
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    TRY_ASSIGN(core::Command command, read_command(row));
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace det::db
