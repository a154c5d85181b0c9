#include "master/db/ingest/log_triggers.h"

#include <algorithm>

#include "common/base/text.h"

namespace det::db {

Status LogTriggers::load(Connection& connection, const std::vector<LogBatch>& batches) {
  if (const std::uint64_t generation = generation_; generation != loaded_) {
    TRY_ASSIGN(
        const Rows rows,
        connection.query("SELECT t.id, w.workspace_id, t.condition FROM webhook_triggers t"
                         " JOIN webhooks w ON w.id = t.webhook_id WHERE t.kind = 'TASK_LOG' ORDER BY t.id"));
    triggers_.clear();
    for (Rows::Row row : rows) {
      const auto id = row.next<std::int64_t>();
      const auto workspace = row.next<std::optional<std::int64_t>>();
      // Patterns were checked when the webhook was created.
      auto pattern = std::make_unique<re2::RE2>(row.next<std::string>(), re2::RE2::Quiet);
      if (pattern->ok()) triggers_.push_back({id, workspace, std::move(pattern)});
    }
    loaded_ = generation;
  }
  // Read each time: an experiment may move to another workspace.
  workspaces_.clear();
  if (std::ranges::none_of(triggers_, [](const Trigger& trigger) { return trigger.workspace.has_value(); }))
    return {};
  std::vector<std::string> tasks;
  for (const LogBatch& batch : batches) tasks.push_back(batch.task.value);
  TRY_ASSIGN(const Rows rows,
             connection.query("SELECT t.task_id, p.workspace_id FROM trials t JOIN experiments e"
                              " ON e.id = t.experiment_id JOIN projects p ON p.id = e.project_id"
                              " WHERE t.task_id = ANY ($1) UNION ALL"
                              " SELECT task_id, workspace_id FROM commands WHERE task_id = ANY ($1)",
                              tasks));
  for (Rows::Row row : rows) {
    const auto task = row.next<TaskId>();
    workspaces_[task] = row.next<std::int64_t>();
  }
  return {};
}

void LogTriggers::match(const LogBatch& batch, const LogLine& line, std::vector<LogMatch>& matches) const {
  const auto workspace = workspaces_.find(batch.task);
  for (const Trigger& trigger : triggers_) {
    if (trigger.workspace && (workspace == workspaces_.end() || workspace->second != *trigger.workspace))
      continue;
    if (!re2::RE2::PartialMatch(line.text, *trigger.pattern)) continue;
    const bool known = std::ranges::any_of(matches, [&](const LogMatch& match) {
      return match.trigger == trigger.id && match.task == batch.task.value;
    });
    if (known) continue;
    matches.push_back({.task = batch.task.value,
                       .agent = batch.agent.value,
                       .line = make_utf8(line.text.substr(0, kMaxTriggeringLog)),
                       .trigger = trigger.id});
  }
}

Status LogTriggers::queue(Connection& connection, const std::vector<LogMatch>& matches) {
  if (matches.empty()) return {};
  std::vector<std::string> tasks, agents, lines;
  std::vector<std::int64_t> triggers;
  for (const LogMatch& match : matches) {
    tasks.push_back(match.task);
    agents.push_back(match.agent);
    lines.push_back(match.line);
    triggers.push_back(match.trigger);
  }
  TRY(connection.query(
      "WITH matched AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])"
      " AS m (task, agent, line, trigger)), first AS ("
      "INSERT INTO webhook_matches (task_id, trigger_id) SELECT task, trigger FROM matched"
      " ON CONFLICT DO NOTHING RETURNING task_id, trigger_id)"
      " INSERT INTO webhook_events (webhook_id, kind, experiment_id, event)"
      " SELECT w.id, t.kind, e.id, json_build_object('regex', t.condition, 'task_id', m.task,"
      " 'trial_id', coalesce(r.id, 0), 'node_name', m.agent, 'triggering_log', m.line)"
      " FROM first f JOIN matched m ON m.task = f.task_id AND m.trigger = f.trigger_id"
      " JOIN webhook_triggers t ON t.id = f.trigger_id JOIN webhooks w ON w.id = t.webhook_id"
      " LEFT JOIN trials r ON r.task_id = m.task LEFT JOIN experiments e ON e.id = r.experiment_id"
      " LEFT JOIN projects p ON p.id = e.project_id LEFT JOIN commands c ON c.task_id = m.task"
      " WHERE webhook_applies(w.id, w.name, w.mode, w.workspace_id,"
      " coalesce(p.workspace_id, c.workspace_id), e.config) ORDER BY t.id",
      tasks, agents, lines, triggers));
  return {};
}

}  // namespace det::db
