#include "master/db/store/pg_writes.h"

#include <map>
#include <optional>
#include <set>

#include "master/db/store/locks.h"
#include "master/db/store/tables.h"

namespace det::db {
namespace {

template <typename... T>
struct Overloaded : T... {
  using T::operator()...;
};
template <typename... T>
Overloaded(T...) -> Overloaded<T...>;

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

// ON CONFLICT DO NOTHING: a group in doubt after a crash may be repeated.
Statement insert_validation(const core::InsertValidation& row) {
  return {
      "WITH stored AS ("
      "INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics, searcher_metric)"
      " VALUES ($1, $2, 'validation', $3, $4, $5::json, $6) ON CONFLICT DO NOTHING RETURNING metrics)"
      " SELECT queue_metric_webhooks($1, 'validation', $3, metrics) FROM stored",
      Params(row.trial, row.run, row.steps_completed, row.reported, row.metrics, row.searcher_metric)};
}

Statement insert_checkpoint(const core::InsertCheckpoint& row) {
  return {
      "INSERT INTO checkpoints (uuid, trial_id, run, task_id, allocation_id, steps_completed, resources, "
      "metadata, size,"
      " reported) VALUES ($1, $2, $3, $4, $5, $6, $7::json, $8::json,"
      " (SELECT least(coalesce(sum(value::bigint), 0), 9223372036854775807)::bigint FROM"
      " json_each_text($7::json)), $9) ON CONFLICT "
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
  std::set<std::int64_t> experiments;
  /// Experiments with new summaries, by experiment, or by trial where the write does not name the experiment.
  std::set<std::int64_t> summarized, summarized_through_trials;

  void add(const core::Write& write) {
    std::visit(
        Overloaded{[&](const core::PutExperiment& w) { experiments.insert(w.row.id.value); },
                   [&](const core::PutTrial& w) {
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
  if (touched.summarized.size() + touched.summarized_through_trials.size() > 1) {
    if (!touched.experiments.empty())
      out.push_back({"SELECT FROM experiments WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE",
                     Params(list(touched.experiments))});
    out.push_back(
        {"SELECT FROM experiment_summaries WHERE experiment_id = ANY ($1 || ARRAY(SELECT experiment_id FROM"
         " trials WHERE id = ANY ($2))) ORDER BY experiment_id FOR NO KEY UPDATE",
         Params(list(touched.summarized), list(touched.summarized_through_trials))});
  }
}

Statement put_quota(const core::PutQuota& write) {
  const core::Quota& row = write.row;
  if (write.removed) {
    return {"DELETE FROM quotas WHERE scope = $1 AND subject_id = $2 AND resource = $3",
            Params(core::scope_name(row.of.scope), row.of.id, core::resource_name(row.resource))};
  }
  return {
      "INSERT INTO quotas (scope, subject_id, resource, amount) VALUES ($1, $2, $3, $4)"
      " ON CONFLICT (scope, subject_id, resource) DO UPDATE SET amount = excluded.amount",
      Params(core::scope_name(row.of.scope), row.of.id, core::resource_name(row.resource), row.limit)};
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
                   return w.first ? experiments_table().upsert(w) : experiments_table().update(w);
                 },
                 [](const core::PutTrial& w) { return trials_table().upsert(w.row); },
                 [](const core::PutCommand& w) { return commands_table().upsert(w.row); },
                 [](const core::PutAllocation& w) { return allocations_table().upsert(w.row); },
                 [](const core::PutAgentSettings& w) { return agent_settings_table().upsert(w.row); },
                 [](const core::DeleteAgent& w) {
                   return Statement{
                       "WITH gone AS (DELETE FROM agent_settings WHERE agent_id = $1)"
                       " DELETE FROM agent_certificates WHERE agent_id = $1 AND issued <= $2 AND NOT revoked",
                       Params(w.agent, w.connected)};
                 },
                 [](const core::PutPilot& w) { return pilots_table().upsert(w.row); },
                 [](const core::PutQuota& w) { return put_quota(w); },
                 [](const core::PutCapacity& w) { return put_capacity(w); },
                 [](const core::AppendSearcherEvent& w) { return searcher_events_table().upsert(w); },
                 [](const core::PutSearcherSnapshot& w) { return searcher_snapshots_table().upsert(w); },
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
