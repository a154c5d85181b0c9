#include "master/db/queries/commands.h"

#include "master/db/queries/allocations.h"
#include "master/db/store/at_rest.h"
#include "master/db/store/tables.h"

namespace det::db {
namespace {

const Columns<CommandRow>& command_columns() {
  static const Columns<CommandRow> columns(
      Column<CommandRow>{
          commands_table().sql("c."),
          [](Rows::Row& row, CommandRow& out) { return commands_table().read(row, out.command); }},
      column<&CommandRow::username>("u.name"), column<&CommandRow::display_name>("u.display_name"),
      // A terminated allocation holds no slots any more.
      column<&CommandRow::live>("(SELECT nullif(a.state, 'TERMINATED') FROM allocations a"
                                " WHERE a.command_id = c.id AND a.run = c.run)"),
      Column<CommandRow>{"coalesce(i.kind, ''), coalesce(i.idle_timeout_s, 0),"
                         " coalesce(i.experiment_ids, '{}'), coalesce(i.trial_ids, '{}')",
                         [](Rows::Row& row, CommandRow& out) -> Status {
                           InteractiveTask& task = out.interactive;
                           row.into(task.kind, task.idle_timeout, task.experiments, task.trials);
                           return {};
                         }});
  return columns;
}

const std::string kCommandTables =
    " FROM commands c JOIN users u ON u.id = c.owner_id"
    " LEFT JOIN interactive_tasks i ON i.task_id = c.task_id";

std::string command_order(const CommandFilter& filter) {
  const std::string way = direction(filter.window);
  switch (filter.sort) {
    case CommandFilter::Sort::kId:
      return "c.task_id" + way;
    case CommandFilter::Sort::kDescription:
      return "c.description" + way + ", c.id" + way;
    case CommandFilter::Sort::kWorkspace:
      return "c.workspace_id" + way + ", c.id" + way;
    case CommandFilter::Sort::kStarted:
      break;
  }
  return "c.id" + way;
}

}  // namespace

Result<Page<CommandRow>> list_commands(Pool& pool, const CommandFilter& filter) {
  // With both owner lists empty every owner matches.
  static const std::string from =
      kCommandTables +
      " WHERE ($1::bigint[] IS NULL OR c.workspace_id = ANY ($1)) AND ($2 = 0 OR c.workspace_id = $2)"
      " AND (cardinality($3::text[]) = 0 AND cardinality($4::bigint[]) = 0 OR u.name = ANY ($3)"
      " OR c.owner_id = ANY ($4)) AND coalesce(i.kind, '') = $5"
      // Tasks of a workspace that is being deleted.
      " AND NOT EXISTS (SELECT FROM workspaces w WHERE w.id = c.workspace_id AND w.deletion = '')";
  return list_page(pool, from, command_order(filter),
                   Params(filter.visible, filter.workspace, filter.users, filter.user_ids, filter.kind),
                   filter.window, command_columns());
}

Result<CommandRow> get_command(Pool& pool, const TaskId& task) {
  static const std::string sql = command_columns().select(kCommandTables + " WHERE c.task_id = $1");
  return command_columns().one(pool.query(sql, task), "command " + task.value);
}

Status put_interactive_task(Pool& pool, const TaskId& task, const InteractiveTask& row) {
  TRY(
      pool.query("INSERT INTO interactive_tasks (task_id, kind, idle_timeout_s, experiment_ids, trial_ids,"
                 " ssh_key) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (task_id) DO NOTHING",
                 task, row.kind, row.idle_timeout, row.experiments, row.trials, seal_text(row.ssh_key)));
  return {};
}

Result<std::string> find_ssh_key(Pool& pool, const TaskId& task) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT i.ssh_key FROM interactive_tasks i JOIN commands c"
                                         " ON c.task_id = i.task_id WHERE i.task_id = $1 AND c.ended IS NULL",
                                         task));
  return rows.empty() ? std::string() : open_text(rows[0].next<std::string>());
}

Status drop_ssh_keys(Pool& pool) {
  TRY(
      pool.query("UPDATE interactive_tasks i SET ssh_key = '' FROM commands c"
                 " WHERE i.ssh_key <> '' AND c.task_id = i.task_id AND c.ended IS NOT NULL"));
  return {};
}

Result<std::map<std::string, std::string>> interactive_kinds(Pool& pool,
                                                             const std::vector<std::string>& tasks) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT task_id, kind FROM interactive_tasks WHERE task_id = ANY ($1)", tasks));
  std::map<std::string, std::string> kinds;
  for (Rows::Row row : rows) {
    std::string task, kind;
    row.into(task, kind);
    kinds.emplace(std::move(task), std::move(kind));
  }
  return kinds;
}

Result<std::vector<CommandRow>> list_idle_timeouts(Pool& pool) {
  static const std::string sql =
      command_columns().select(kCommandTables + " WHERE c.ended IS NULL AND i.idle_timeout_s > 0");
  return command_columns().read(pool.query(sql));
}

Status put_generic_task(Pool& pool, const TaskId& task, const GenericTask& row) {
  TRY(
      pool.query("INSERT INTO generic_tasks (task_id, config, forked_from, no_pause) VALUES ($1, $2, $3, $4)"
                 " ON CONFLICT (task_id) DO NOTHING",
                 task, seal_yaml(row.config), row.forked_from, row.no_pause));
  return {};
}

Result<std::optional<GenericTask>> find_generic_task(Pool& pool, const TaskId& task) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT config, forked_from, no_pause FROM generic_tasks WHERE task_id = $1", task));
  if (rows.empty()) return std::optional<GenericTask>();
  GenericTask found;
  rows[0].into(found.config, found.forked_from, found.no_pause);
  TRY_ASSIGN(found.config, open_yaml(std::move(found.config)));
  return std::optional(std::move(found));
}

Result<TaskFacts> get_task(Pool& pool, const TaskId& task) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query("SELECT id, NULL, state IN ('COMPLETED', 'CANCELED', 'ERROR') FROM trials WHERE task_id = $1"
                 " UNION ALL SELECT NULL, id, ended IS NOT NULL FROM commands WHERE task_id = $1",
                 task));
  if (rows.empty()) return fail(Code::kNotFound, "task " + task.value + " not found");
  Rows::Row row = rows[0];
  const TaskKey key = next_task(row);
  return TaskFacts{.key = key, .ended = row.next<bool>()};
}

Result<bool> is_tensorboard(Pool& pool, const TaskId& task) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT 1 FROM interactive_tasks WHERE task_id = $1 AND kind = 'TENSORBOARD'", task));
  return !rows.empty();
}

Result<TrialId> trial_of_task(Pool& pool, const TaskId& task) {
  return value_of<TrialId>(pool.query("SELECT id FROM trials WHERE task_id = $1", task),
                           "task " + task.value);
}

}  // namespace det::db
