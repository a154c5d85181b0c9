#include "master/db/store/pg_store_load.h"

#include "common/base/json.h"
#include "common/expconf/parse.h"
#include "master/db/queries/queries_command.h"
#include "master/db/store/allocation_parts.h"
#include "master/db/store/rows.h"

/// $1: one experiment; NULL: all experiments that have not ended.
#define DET_CHOSEN_EXPERIMENTS                                         \
  "SELECT id FROM experiments WHERE CASE WHEN $1::bigint IS NULL THEN" \
  " state NOT IN ('COMPLETED', 'CANCELED', 'ERROR') ELSE id = $1::bigint END"

namespace det::db {
namespace {

using Choice = std::optional<ExperimentId>;

Result<std::shared_ptr<const expconf::ExperimentConfig>> read_config(ExperimentId id,
                                                                     const std::string& text) {
  const std::string whose = "the stored configuration of experiment " + std::to_string(id.value);
  // The limits exceed those of submission: any configuration that was stored must load again.
  const auto json = parse_json(text, {.bytes = 256 << 20, .depth = 200});
  if (!json) return fail(Code::kDataLoss, whose + " cannot be read: " + json.error().message);
  auto config = expconf::from_resolved(*json);
  if (!config) return fail(Code::kDataLoss, whose + " cannot be read: " + config.error().message);
  return std::make_shared<const expconf::ExperimentConfig>(std::move(*config));
}

Status load_experiments(Connection& connection, Choice choice, core::Recovered& out) {
  TRY_ASSIGN(
      const Rows rows,
      connection.query(
          "SELECT id, request_id, job_id, owner_id, project_id, state, config, model_definition"
          ", progress, submitted, ended, parent_id, searcher_events, unmanaged,"
          " resource_pool, coalesce(priority, 0), coalesce(weight, 1), max_slots, coalesce(queue_position, 0)"
          " FROM experiments"
          " WHERE id IN (" DET_CHOSEN_EXPERIMENTS ") ORDER BY id",
          choice));
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    core::Experiment experiment;
    row.into(experiment.id, experiment.request_id, experiment.job_id, experiment.owner, experiment.project);
    experiment.state = read_state(row);
    TRY_ASSIGN(experiment.config, read_config(experiment.id, row.next<std::string>()));
    row.into(experiment.code_archive, experiment.progress, experiment.submitted, experiment.ended,
             experiment.parent, experiment.searcher_events, experiment.unmanaged);
    core::QueuePlace& queue = experiment.queue;
    row.into(queue.pool, queue.priority, queue.weight, queue.max_slots, queue.position);
    // Every experiment has an entry, even before the first event.
    out.searchers[experiment.id];
    out.experiments.push_back(std::move(experiment));
  }
  return {};
}

Status load_searchers(Connection& connection, Choice choice, core::Recovered& out) {
  TRY_ASSIGN(const Rows snapshots,
             connection.query("SELECT experiment_id, number, snapshot FROM searcher_snapshots"
                              " WHERE experiment_id IN (" DET_CHOSEN_EXPERIMENTS ")",
                              choice));
  for (int i = 0; i < snapshots.size(); ++i) {
    Rows::Row row = snapshots[i];
    auto& log = out.searchers[row.next<ExperimentId>()];
    row.into(log.snapshot_number, log.snapshot);
  }
  // Replay starts at the snapshot; older events are already part of it.
  TRY_ASSIGN(
      const Rows events,
      connection.query("SELECT e.experiment_id, e.event FROM searcher_events e LEFT JOIN searcher_snapshots s"
                       " USING (experiment_id) WHERE e.experiment_id IN (" DET_CHOSEN_EXPERIMENTS ")"
                       " AND e.number >= coalesce(s.number, 0) ORDER BY e.experiment_id, e.number",
                       choice));
  for (int i = 0; i < events.size(); ++i) {
    Rows::Row row = events[i];
    auto& log = out.searchers[row.next<ExperimentId>()];
    log.events.push_back(row.next<std::string>());
  }
  return {};
}

Status load_allocations(Connection& connection, core::Recovered& out) {
  // Commands have negative trial ids in the core.
  TRY_ASSIGN(const Rows rows,
             connection.query(
                 "SELECT id, coalesce(trial_id, -command_id), run, state, pool, parts, port, attached, "
                 "preempt_requested,"
                 " preempt_acknowledged, kill_requested, started, ended, exit_kind, exit_code, exit_message"
                 " FROM allocations WHERE state <> 'TERMINATED' ORDER BY 2, run"));
  for (int i = 0; i < rows.size(); ++i) {
    Rows::Row row = rows[i];
    core::Allocation allocation;
    row.into(allocation.id, allocation.trial, allocation.run);
    allocation.state = read_allocation_state(row).value_or(core::AllocationState::kTerminated);
    row.into(allocation.pool);
    TRY_ASSIGN(allocation.parts, read_parts(row.next<std::string>()));
    row.into(allocation.port, allocation.attached, allocation.preempt_requested,
             allocation.preempt_acknowledged, allocation.kill_requested, allocation.started,
             allocation.ended);
    const auto kind = row.next<std::optional<std::string>>();
    const auto code = row.next<std::optional<std::int32_t>>();
    const auto message = row.next<std::optional<std::string>>();
    if (kind) allocation.exit = core::Exit{parse_exit_kind(*kind), code.value_or(0), message.value_or("")};
    out.allocations.push_back(std::move(allocation));
  }
  return {};
}

Status load_agent_settings(Connection& connection, core::Recovered& out) {
  TRY_ASSIGN(const Rows rows,
             connection.query("SELECT agent_id, enabled, draining, disabled_slots FROM agent_settings"
                              " ORDER BY agent_id"));
  for (int i = 0; i < rows.size(); ++i) {
    core::AgentSettings& settings = out.agents.emplace_back();
    Rows::Row row = rows[i];
    row.into(settings.agent, settings.enabled, settings.draining);
    for (std::int64_t slot : row.next<std::vector<std::int64_t>>())
      settings.disabled_slots.insert(static_cast<int>(slot));
  }
  return {};
}

}  // namespace

// Names without a known state read as failed: an ended state is never resumed.
core::State read_state(Rows::Row& row) {
  return core::parse_state(row.next<std::string>()).value_or(core::State::kError);
}

std::optional<core::AllocationState> read_allocation_state(Rows::Row& row) {
  const auto name = row.next<std::optional<std::string>>();
  return name ? core::parse_allocation_state(*name) : std::nullopt;
}

core::Trial read_trial(Rows::Row& row) {
  core::Trial trial;
  row.into(trial.id, trial.experiment, trial.request_id, trial.task, trial.seed, trial.hparams);
  trial.state = read_state(row);
  row.into(trial.run, trial.restarts, trial.latest_checkpoint, trial.latest_steps, trial.steps_completed,
           trial.last_validation, trial.checkpoint_validation, trial.searcher_steps, trial.best_metric,
           trial.early_exit_invalid_hp, trial.held, trial.progress, trial.exit_reason, trial.started,
           trial.ended);
  return trial;
}

static Status load_trials(Connection& connection, Choice choice, core::Recovered& out) {
  TRY_ASSIGN(
      const Rows trials,
      connection.query("SELECT " DET_TRIAL_COLUMNS
                       " FROM trials t WHERE t.experiment_id IN (" DET_CHOSEN_EXPERIMENTS ") ORDER BY t.id",
                       choice));
  for (int i = 0; i < trials.size(); ++i) {
    Rows::Row row = trials[i];
    out.trials.push_back(read_trial(row));
  }
  return {};
}

Result<core::Recovered> load_recovered(Connection& connection) {
  core::Recovered out;
  TRY(load_experiments(connection, std::nullopt, out));
  TRY(load_searchers(connection, std::nullopt, out));
  TRY(load_trials(connection, std::nullopt, out));
  TRY_ASSIGN(out.commands, load_commands(connection));
  TRY(load_allocations(connection, out));
  TRY(load_agent_settings(connection, out));
  // Ids of deleted rows are not reused.
  TRY_ASSIGN(const Rows next, connection.query("SELECT greatest((SELECT max(id) FROM experiments),"
                                               " (SELECT max(last_experiment) FROM cluster), 0) + 1,"
                                               " greatest((SELECT max(id) FROM trials),"
                                               " (SELECT max(last_trial) FROM cluster), 0) + 1,"
                                               " coalesce((SELECT max(id) FROM commands), 0) + 1"));
  next[0].into(out.next_experiment, out.next_trial, out.next_command);
  return out;
}

Result<core::Recovered> load_ended(Connection& connection, ExperimentId id) {
  core::Recovered out;
  TRY(load_experiments(connection, id, out));
  if (out.experiments.empty())
    return fail(Code::kNotFound, "there is no experiment " + std::to_string(id.value));
  TRY(load_searchers(connection, id, out));
  TRY(load_trials(connection, id, out));
  return out;
}

Result<StoredSearch> load_search(Connection& connection, ExperimentId id) {
  // One snapshot: the log and the trials must match.
  TRY(connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
  core::Recovered read;
  TRY(load_experiments(connection, id, read));
  if (read.experiments.empty()) {
    connection.rollback();
    return fail(Code::kNotFound, "there is no experiment " + std::to_string(id.value));
  }
  TRY(load_searchers(connection, id, read));
  TRY_ASSIGN(const Rows rows,
             connection.query("SELECT id, request_id FROM trials WHERE experiment_id = $1 ORDER BY id", id));
  connection.rollback();
  StoredSearch out{
      .config = read.experiments.front().config, .log = std::move(read.searchers[id]), .trials = {}};
  for (int i = 0; i < rows.size(); ++i) {
    auto& [trial, request] = out.trials.emplace_back();
    rows[i].into(trial, request);
  }
  return out;
}

}  // namespace det::db
