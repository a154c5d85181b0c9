#include "master/db/store/pg_writes.h"

#include <map>
#include <optional>
#include <set>

#include "common/base/json.h"
#include "master/db/store/allocation_parts.h"
#include "master/db/store/rows.h"

namespace det::db {
namespace {

template <typename... T>
struct Overloaded : T... {
  using T::operator()...;
};
template <typename... T>
Overloaded(T...) -> Overloaded<T...>;

Statement insert_experiment(const core::Experiment& row, const std::string& original_config) {
  const expconf::ExperimentConfig& config = *row.config;
  return {
      "INSERT INTO experiments (id, request_id, job_id, owner_id, project_id, state, config, original_config,"
      " model_definition, progress, submitted, ended, parent_id, searcher_events, name, description, labels,"
      " resource_pool, searcher_name, searcher_metric, smaller_is_better, unmanaged, priority, weight, "
      "max_slots,"
      " queue_position)"
      " VALUES ($1, $2, $3, $4, $5, $6, $7::json, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, "
      "$20, $21, $22, $23, $24, $25, $26)"
      " ON CONFLICT (id) DO UPDATE SET state = EXCLUDED.state, progress = EXCLUDED.progress, ended = "
      "EXCLUDED.ended,"
      " searcher_events = EXCLUDED.searcher_events",
      Params(row.id, row.request_id, row.job_id, row.owner, row.project, core::state_name(row.state),
             dump_json(config.resolved), original_config, row.code_archive, row.progress, row.submitted,
             row.ended, row.parent, row.searcher_events, config.name, config.description, config.labels,
             row.queue.pool, config.searcher.name, config.searcher.metric, config.searcher.smaller_is_better,
             row.unmanaged, row.queue.priority, row.queue.weight, row.queue.max_slots, row.queue.position)};
}

Statement update_experiment(const core::Experiment& row) {
  return {
      // project_id is left out: after the first write it belongs to queries_workspace, which moves
      // experiments.
      "UPDATE experiments SET request_id = $2, job_id = $3, owner_id = $4, state = $5, model_definition = $6,"
      " progress = $7, submitted = $8, ended = $9, parent_id = $10, searcher_events = $11, unmanaged = $12,"
      " resource_pool = $13, priority = $14, weight = $15, max_slots = $16, queue_position = $17"
      " WHERE id = $1",
      Params(row.id, row.request_id, row.job_id, row.owner, core::state_name(row.state), row.code_archive,
             row.progress, row.submitted, row.ended, row.parent, row.searcher_events, row.unmanaged,
             row.queue.pool, row.queue.priority, row.queue.weight, row.queue.max_slots, row.queue.position),
      true};
}

// Upserts write every column: the row arrives with its final value, whatever was stored before.
Statement put_trial(const core::Trial& row) {
  return {
      "INSERT INTO trials (id, experiment_id, request_id, task_id, seed, hparams, state, run, restarts,"
      " latest_checkpoint, latest_steps, steps_completed, last_validation, checkpoint_validation, "
      "searcher_steps, best_metric,"
      " early_exit_invalid_hp, progress, exit_reason, started, ended, held)"
      " VALUES ($1, $2, $3, $4, $5, $6::json, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, "
      "$20, $21, $22)"
      " ON CONFLICT (id) DO UPDATE SET experiment_id = EXCLUDED.experiment_id, request_id = "
      "EXCLUDED.request_id,"
      " task_id = EXCLUDED.task_id, seed = EXCLUDED.seed, hparams = EXCLUDED.hparams, state = EXCLUDED.state,"
      " run = EXCLUDED.run, restarts = EXCLUDED.restarts, latest_checkpoint = EXCLUDED.latest_checkpoint,"
      " latest_steps = EXCLUDED.latest_steps, steps_completed = EXCLUDED.steps_completed,"
      " last_validation = EXCLUDED.last_validation,"
      " checkpoint_validation = EXCLUDED.checkpoint_validation, searcher_steps = EXCLUDED.searcher_steps, "
      "best_metric = EXCLUDED.best_metric,"
      " early_exit_invalid_hp = EXCLUDED.early_exit_invalid_hp, progress = EXCLUDED.progress,"
      " exit_reason = EXCLUDED.exit_reason, started = EXCLUDED.started, ended = EXCLUDED.ended, held = "
      "EXCLUDED.held",
      Params(row.id, row.experiment, row.request_id, row.task, row.seed, row.hparams,
             core::state_name(row.state), row.run, row.restarts, row.latest_checkpoint, row.latest_steps,
             row.steps_completed, row.last_validation, row.checkpoint_validation, row.searcher_steps,
             row.best_metric, row.early_exit_invalid_hp, row.progress, row.exit_reason, row.started,
             row.ended, row.held)};
}

Statement put_command(const core::Command& row) {
  std::optional<std::string> kind, message;
  std::optional<std::int64_t> code;
  if (row.exit) {
    kind = exit_kind_name(row.exit->kind);
    message = row.exit->message;
    code = row.exit->code;
  }
  return {
      "INSERT INTO commands (id, task_id, job_id, owner_id, workspace_id, state, config, description, "
      "context,"
      " resource_pool, priority, weight, max_slots, queue_position, submitted, ended, exit_kind, exit_code, "
      "exit_message)"
      " VALUES ($1, $2, $3, $4, $5, $6, $7::json, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)"
      " ON CONFLICT (id) DO UPDATE SET state = EXCLUDED.state, resource_pool = EXCLUDED.resource_pool,"
      " priority = EXCLUDED.priority, weight = EXCLUDED.weight, max_slots = EXCLUDED.max_slots,"
      " queue_position = EXCLUDED.queue_position, ended = EXCLUDED.ended, exit_kind = EXCLUDED.exit_kind,"
      " exit_code = EXCLUDED.exit_code, exit_message = EXCLUDED.exit_message",
      Params(row.id, row.task, row.job_id, row.owner, row.workspace, core::state_name(row.state),
             dump_json(row.config->resolved), row.config->description, row.code_archive, row.queue.pool,
             row.queue.priority, row.queue.weight, row.queue.max_slots, row.queue.position, row.submitted,
             row.ended, kind, code, message)};
}

Statement put_allocation(const core::Allocation& row) {
  std::optional<std::string> kind, message;
  std::optional<std::int64_t> code;
  if (row.exit) {
    kind = exit_kind_name(row.exit->kind);
    message = row.exit->message;
    code = row.exit->code;
  }
  // Exactly one of the two is set.
  std::optional<TrialId> trial;
  std::optional<core::CommandId> command;
  if (core::is_command(row.trial)) {
    command = core::command_of(row.trial);
  } else {
    trial = row.trial;
  }
  return {
      "INSERT INTO allocations (id, trial_id, run, state, pool, parts, port, attached,"
      " preempt_requested, preempt_acknowledged, kill_requested, started, ended, exit_kind, exit_code, "
      "exit_message, command_id, slots)"
      " VALUES ($1, $2, $3, $4, $5, $6::json, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)"
      " ON CONFLICT (id) DO UPDATE SET trial_id = EXCLUDED.trial_id, run = EXCLUDED.run, state = "
      "EXCLUDED.state,"
      " pool = EXCLUDED.pool, parts = EXCLUDED.parts, port = EXCLUDED.port, attached = EXCLUDED.attached,"
      " preempt_requested = EXCLUDED.preempt_requested, preempt_acknowledged = EXCLUDED.preempt_acknowledged,"
      " kill_requested = EXCLUDED.kill_requested, started = EXCLUDED.started, ended = EXCLUDED.ended,"
      " exit_kind = EXCLUDED.exit_kind, exit_code = EXCLUDED.exit_code, exit_message = EXCLUDED.exit_message,"
      " slots = EXCLUDED.slots",
      Params(row.id, trial, row.run, core::allocation_state_name(row.state), row.pool, write_parts(row.parts),
             row.port, row.attached, row.preempt_requested, row.preempt_acknowledged, row.kill_requested,
             row.started, row.ended, kind, code, message, command, row.slot_count())};
}

/// Records the slots that an agent offers. A gap of under a minute is closed: a restart of the master ends
/// all rows, and the agents reconnect shortly after.
Statement put_capacity(const core::PutCapacity& write) {
  return {
      "WITH over AS (UPDATE capacity SET ended = greatest(started, $4) WHERE agent_id = $1 AND ended IS NULL"
      " AND (pool, slots) <> ($2, $3)),"
      " again AS (UPDATE capacity SET ended = NULL WHERE agent_id = $1 AND pool = $2 AND slots = $3"
      " AND coalesce(ended, $4) > $4 - interval '1 minute'"
      " AND started = (SELECT max(started) FROM capacity WHERE agent_id = $1) RETURNING 1)"
      " INSERT INTO capacity (agent_id, pool, slots, started)"
      " SELECT $1, $2, $3, $4 WHERE $3 > 0 AND NOT EXISTS (SELECT FROM again)",
      Params(write.agent, write.pool, write.slots, write.at)};
}

Statement put_agent_settings(const core::AgentSettings& row) {
  return {
      "INSERT INTO agent_settings (agent_id, enabled, draining, disabled_slots) VALUES ($1, $2, $3, $4)"
      " ON CONFLICT (agent_id) DO UPDATE SET enabled = EXCLUDED.enabled, draining = EXCLUDED.draining,"
      " disabled_slots = EXCLUDED.disabled_slots",
      Params(row.agent, row.enabled, row.draining,
             std::vector<std::int64_t>(row.disabled_slots.begin(), row.disabled_slots.end()))};
}

// ON CONFLICT DO NOTHING: a group in doubt after a crash may be repeated.
Statement insert_validation(const core::InsertValidation& row) {
  return {
      "INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics, searcher_metric)"
      " VALUES ($1, $2, 'validation', $3, $4, $5::json, $6) ON CONFLICT DO NOTHING",
      Params(row.trial, row.run, row.steps_completed, row.reported, row.metrics, row.searcher_metric)};
}

Statement insert_checkpoint(const core::InsertCheckpoint& row) {
  return {
      "INSERT INTO checkpoints (uuid, trial_id, run, task_id, allocation_id, steps_completed, resources, "
      "metadata, size,"
      " reported) VALUES ($1, $2, $3, $4, $5, $6, $7::json, $8::json,"
      " (SELECT coalesce(sum(value::bigint), 0)::bigint FROM json_each_text($7::json)), $9) ON CONFLICT "
      "(uuid) DO NOTHING",
      Params(row.uuid, row.trial, row.run, row.task, row.allocation, row.steps_completed, row.resources,
             row.metadata, row.reported)};
}

/// Inserts all lines in one statement, in this order.
Statement append_logs(const std::vector<const core::AppendTaskLog*>& lines) {
  std::vector<std::string> tasks, allocations, levels;
  std::vector<WallTime> times;
  std::vector<Bytes> texts;
  for (const core::AppendTaskLog* line : lines) {
    tasks.push_back(line->task.value);
    allocations.push_back(line->allocation.value);
    times.push_back(line->time);
    levels.push_back(line->level);
    texts.push_back(Bytes{line->text});
  }
  return {
      "INSERT INTO task_logs (task_id, allocation_id, agent_id, rank, time, level, stdtype, source, log)"
      " SELECT task, allocation, '', -1, time, level, '', 'master', log FROM"
      " unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::bytea[]) AS line (task, "
      "allocation, time, level, log)",
      Params(tasks, allocations, times, levels, texts)};
}

/// Rows that the writes of a transaction lock.
struct Touched {
  std::set<std::string> tasks;  ///< Tasks with new log lines.
  std::set<std::int64_t> trials;
  std::set<std::string> damaged;  ///< Ids of checkpoints.
  /// Experiments with new summaries, by experiment, or by trial where the write does not name the experiment.
  std::set<std::int64_t> summarized, summarized_through_trials;

  void add(const core::Write& write) {
    std::visit(
        Overloaded{[&](const core::PutTrial& w) {
                     trials.insert(w.row.id.value);
                     summarized.insert(w.row.experiment.value);
                     known_.insert(w.row.id.value);
                   },
                   [&](const core::InsertValidation& w) { trials.insert(w.trial.value); },
                   [&](const core::ArchiveMetrics& w) { trials.insert(w.trial.value); },
                   [&](const core::AppendTaskLog& w) { tasks.insert(w.task.value); },
                   [&](const core::InsertCheckpoint& w) { summarized_through_trials.insert(w.trial.value); },
                   [&](const core::MarkDamaged& w) {
                     damaged.insert(w.uuid.value);
                     summarized_through_trials.insert(w.trial.value);
                   },
                   [](const auto&) {}},
        write);
  }
  void finish() {
    for (const std::int64_t trial : known_) summarized_through_trials.erase(trial);
  }

 private:
  std::set<std::int64_t> known_;
};

template <typename T>
std::vector<T> list(const std::set<T>& values) {
  return {values.begin(), values.end()};
}

void take_locks(const Touched& touched, std::vector<Statement>& out) {
  if (!touched.tasks.empty()) out.push_back(lock_tasks(list(touched.tasks)));
  // Waits until bulk rows of the current runs are committed, and blocks later ones.
  if (!touched.trials.empty())
    out.push_back({"SELECT id FROM trials WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE",
                   Params(list(touched.trials))});
  if (touched.damaged.size() > 1)
    out.push_back({"SELECT FROM checkpoints WHERE uuid = ANY ($1) ORDER BY uuid FOR NO KEY UPDATE",
                   Params(list(touched.damaged))});
  // Triggers update the summaries at the end of the transaction. A single row cannot deadlock and needs no
  // early lock.
  if (touched.summarized.size() + touched.summarized_through_trials.size() > 1)
    out.push_back(
        {"SELECT FROM experiment_summaries WHERE experiment_id = ANY ($1 || ARRAY(SELECT experiment_id FROM"
         " trials WHERE id = ANY ($2))) ORDER BY experiment_id FOR NO KEY UPDATE",
         Params(list(touched.summarized), list(touched.summarized_through_trials))});
}

/// Key (kind, id) of the row that a write replaces as a whole; empty for writes that append.
std::optional<std::pair<std::size_t, std::string>> row_of(const core::Write& write) {
  using Named = std::optional<std::pair<std::size_t, std::string>>;
  const auto named = [&](std::string id) { return Named({write.index(), std::move(id)}); };
  return std::visit(
      Overloaded{[&](const core::PutExperiment& w) { return named(std::to_string(w.row.id.value)); },
                 [&](const core::PutTrial& w) { return named(std::to_string(w.row.id.value)); },
                 [&](const core::PutAllocation& w) { return named(w.row.id.value); },
                 [](const auto&) { return Named(); }},
      write);
}

Statement statement_for(const core::Write& write) {
  return std::visit(
      Overloaded{[](const core::PutExperiment& w) {
                   return w.first ? insert_experiment(w.row, w.original_config) : update_experiment(w.row);
                 },
                 [](const core::PutTrial& w) { return put_trial(w.row); },
                 [](const core::PutCommand& w) { return put_command(w.row); },
                 [](const core::PutAllocation& w) { return put_allocation(w.row); },
                 [](const core::PutAgentSettings& w) { return put_agent_settings(w.row); },
                 [](const core::PutCapacity& w) { return put_capacity(w); },
                 [](const core::AppendSearcherEvent& w) {
                   return Statement{
                       "INSERT INTO searcher_events (experiment_id, number, event) VALUES ($1, $2, $3)"
                       " ON CONFLICT (experiment_id, number) DO NOTHING",
                       Params(w.experiment, w.number, w.event)};
                 },
                 [](const core::PutSearcherSnapshot& w) {
                   return Statement{
                       "INSERT INTO searcher_snapshots (experiment_id, number, snapshot) VALUES ($1, $2, $3)"
                       " ON CONFLICT (experiment_id) DO UPDATE SET number = EXCLUDED.number,"
                       " snapshot = EXCLUDED.snapshot",
                       Params(w.experiment, w.number, w.snapshot)};
                 },
                 [](const core::InsertValidation& w) { return insert_validation(w); },
                 [](const core::InsertCheckpoint& w) { return insert_checkpoint(w); },
                 [](const core::MarkDamaged& w) {
                   return Statement{
                       "UPDATE checkpoints SET state = 'ERROR' WHERE uuid = $1 AND state = 'COMPLETED'",
                       Params(w.uuid)};
                 },
                 [](const core::ArchiveMetrics& w) {
                   // Rows of the system profiler are keyed by time instead of steps and stay valid after a
                   // rollback.
                   return Statement{
                       "WITH packed AS (DELETE FROM metric_chunks WHERE trial_id = $1 AND last_steps > $2)"
                       " UPDATE metrics SET archived = true WHERE trial_id = $1 AND steps_completed > $2"
                       " AND NOT archived AND grp NOT IN ('gpu', 'cpu', 'memory', 'disk', 'network')",
                       Params(w.trial, w.beyond)};
                 },
                 [](const core::AppendTaskLog& w) { return append_logs({&w}); }},
      write);
}

}  // namespace

Statement lock_tasks(const std::vector<std::string>& tasks) {
  // 0x646574 ("det") separates these locks from those of other programs in a shared database.
  return {
      "SELECT pg_advisory_xact_lock(6579572, key) FROM"
      " (SELECT DISTINCT hashtext(task) AS key FROM unnest($1::text[]) AS task ORDER BY key) AS keys",
      Params(tasks)};
}

std::vector<Statement> statements_for(const std::vector<const std::vector<core::Write>*>& groups) {
  Touched touched;
  struct Row {
    const core::Write* first;
    const core::Write* last;
  };
  std::vector<Row> rows;
  std::map<std::pair<std::size_t, std::string>, std::size_t> places;
  // Log lines go last, in one statement; every other write keeps its place.
  std::vector<const core::AppendTaskLog*> lines;
  for (const auto* group : groups) {
    for (const core::Write& write : *group) {
      touched.add(write);
      if (const auto* line = std::get_if<core::AppendTaskLog>(&write)) {
        lines.push_back(line);
        continue;
      }
      // A later write of the same row takes the place of the earlier one.
      const auto row = row_of(write);
      const auto known = row ? places.try_emplace(*row, rows.size()) : std::pair(places.end(), true);
      if (known.second) {
        rows.push_back({&write, &write});
      } else {
        rows[known.first->second].last = &write;
      }
    }
  }
  touched.finish();
  std::vector<Statement> out;
  take_locks(touched, out);
  for (const Row& row : rows) {
    const auto* first = std::get_if<core::PutExperiment>(row.first);
    if (first && first->first && row.first != row.last) {
      core::PutExperiment both{std::get<core::PutExperiment>(*row.last).row, true, first->original_config};
      // Only the first write carries these.
      both.row.config = first->row.config;
      both.row.project = first->row.project;
      out.push_back(statement_for(both));
    } else {
      out.push_back(statement_for(*row.last));
    }
  }
  if (!lines.empty()) out.push_back(append_logs(lines));
  return out;
}

}  // namespace det::db
