#include "master/db/queries/queries_command.h"

#include "master/db/store/tables.h"

// $1 visible workspaces, $2 workspace, $3 and $4 owners. With both owner lists empty every owner matches.
#define DET_COMMAND_FILTER                                                                                  \
  " WHERE ($1::bigint[] IS NULL OR c.workspace_id = ANY ($1)) AND ($2 = 0 OR c.workspace_id = $2)"          \
  " AND (cardinality($3::text[]) = 0 AND cardinality($4::bigint[]) = 0 OR u.name = ANY ($3) OR c.owner_id " \
  "= ANY ($4))"

namespace det::db {
namespace {

const Columns<CommandRow>& command_columns() {
  static const Columns<CommandRow> columns = {
      {commands_table().sql("c."),
       [](Rows::Row& row, CommandRow& out) { return commands_table().read(row, out.command); }},
      column<&CommandRow::username>("u.name"),
      column<&CommandRow::display_name>("u.display_name"),
      // A terminated allocation holds no slots any more.
      column<&CommandRow::live>(
          "(SELECT nullif(a.state, 'TERMINATED') FROM allocations a WHERE a.command_id = c.id)")};
  return columns;
}
const std::string& select_commands() {
  static const std::string sql =
      "SELECT " + command_columns().sql() + " FROM commands c JOIN users u ON u.id = c.owner_id";
  return sql;
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
  const std::string sql = select_commands() + DET_COMMAND_FILTER + order_by(filter) + " OFFSET $5 LIMIT $6";
  TRY_ASSIGN(const Rows rows, pool.query(sql, filter.visible, filter.workspace, filter.users, filter.user_ids,
                                         span.first, span.count));
  TRY_ASSIGN(page.rows, command_columns().read(rows));
  return page;
}

Result<CommandRow> get_command(Pool& pool, const TaskId& task) {
  TRY_ASSIGN(const Rows rows, pool.query(select_commands() + " WHERE c.task_id = $1", task));
  if (rows.empty()) return fail(Code::kNotFound, "command " + task.value + " not found");
  return command_columns().first(rows);
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

}  // namespace det::db
