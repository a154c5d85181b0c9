#include "tests/sim/memory_store.h"

#include <algorithm>

namespace det::sim {
namespace {

struct Apply {
  MemoryDisk& disk;

  void operator()(const core::PutExperiment& write) { disk.experiments[write.row.id] = write.row; }
  void operator()(const core::PutTrial& write) { disk.trials[write.row.id] = write.row; }
  void operator()(const core::PutCommand& write) { disk.commands[write.row.id] = write.row; }
  void operator()(const core::PutAllocation& write) {
    core::Allocation& row = disk.allocations[write.row.id] = write.row;
    // Monotonic times are meaningless in another process.
    row.preempt_deadline.reset();
    row.kill_again.reset();
  }
  void operator()(const core::AppendSearcherEvent& write) {
    disk.searcher_events[write.experiment].emplace(write.number, write.event);
  }
  void operator()(const core::PutSearcherSnapshot& write) {
    disk.searcher_snapshots[write.experiment] = write;
  }
  void operator()(const core::InsertValidation& write) {
    disk.validations.emplace(MemoryDisk::ValidationKey{write.trial, write.run, write.steps_completed},
                             MemoryDisk::Validation{write});
  }
  void operator()(const core::InsertCheckpoint& write) { disk.checkpoints.emplace(write.uuid, write); }
  void operator()(const core::MarkDamaged& write) { disk.damaged.insert(write.uuid); }
  void operator()(const core::ArchiveMetrics& write) {
    auto from = disk.validations.lower_bound({write.trial, 0, 0});
    for (auto it = from; it != disk.validations.end() && it->second.row.trial == write.trial; ++it) {
      if (it->second.row.steps_completed > write.beyond) it->second.archived = true;
    }
  }
  void operator()(const core::PutAgentSettings& write) { disk.agents[write.row.agent] = write.row; }
  void operator()(const core::DeleteAgent& write) { disk.agents.erase(write.agent); }
  void operator()(const core::PutPilot& write) { disk.pilots[write.row.id] = write.row; }
  void operator()(const core::PutQuota& write) {
    const auto key = std::pair(write.row.of, write.row.resource);
    if (write.removed) {
      disk.quotas.erase(key);
    } else {
      disk.quotas[key] = write.row.limit;
    }
  }
  void operator()(const core::PutCapacity&) {}
  void operator()(const core::AppendTaskLog& write) { disk.logs.push_back(write); }
};

}  // namespace

void MemoryDisk::apply(const core::Write& write) { std::visit(Apply{*this}, write); }

std::optional<core::ReportDamage::Older> MemoryDisk::older(TrialId trial, const CheckpointId& uuid) const {
  const auto bad = checkpoints.find(uuid);
  std::optional<core::ReportDamage::Older> newest;
  for (const auto& [id, row] : checkpoints) {
    if (row.trial != trial || id == uuid || damaged.contains(id) || bad == checkpoints.end() ||
        row.steps_completed > bad->second.steps_completed ||
        (newest && newest->steps_completed > row.steps_completed))
      continue;
    newest = {.uuid = id, .steps_completed = row.steps_completed};
  }
  if (!newest) return newest;
  for (auto it = validations.lower_bound({trial, 0, 0});
       it != validations.end() && it->second.row.trial == trial; ++it) {
    const std::int64_t steps = it->second.row.steps_completed;
    if (!it->second.archived && steps <= newest->steps_completed)
      newest->validation = std::max(newest->validation, steps);
  }
  return newest;
}

core::Recovered MemoryDisk::recover(std::optional<ExperimentId> one) const {
  core::Recovered recovered;
  for (const auto& [id, experiment] : experiments) {
    recovered.next_experiment = ExperimentId(id.value + 1);
    if (one ? id != *one : core::is_terminal(experiment.state)) continue;
    recovered.experiments.push_back(experiment);
    auto& log = recovered.searchers[id];
    if (auto it = searcher_snapshots.find(id); it != searcher_snapshots.end()) {
      log.snapshot_number = it->second.number;
      log.snapshot = it->second.snapshot;
    }
    auto events = searcher_events.find(id);
    if (events == searcher_events.end()) continue;
    for (auto it = events->second.lower_bound(log.snapshot_number); it != events->second.end(); ++it) {
      log.events.push_back(it->second);
    }
  }
  for (const auto& [id, trial] : trials) {
    recovered.next_trial = TrialId(id.value + 1);
    if (recovered.searchers.contains(trial.experiment)) recovered.trials.push_back(trial);
  }
  for (const auto& [id, command] : commands) {
    recovered.next_command = CommandId(id.value + 1);
    if (!core::is_terminal(command.state)) recovered.commands.push_back(command);
  }
  for (const auto& [id, settings] : agents) recovered.agents.push_back(settings);
  for (const auto& [key, limit] : quotas) recovered.quotas.push_back({key.first, key.second, limit});
  for (const auto& [id, pilot] : pilots) {
    recovered.next_pilot = id + 1;
    if (!pilot.ended) recovered.pilots.push_back(pilot);
  }
  for (const auto& [id, allocation] : allocations) {
    if (allocation.state != core::AllocationState::kTerminated) recovered.allocations.push_back(allocation);
  }
  return recovered;
}

db::Sequence MemoryStore::append(std::vector<core::Write> group) {
  pending_.push_back(std::move(group));
  ++appended_;
  if (mode_ == Mode::kAtOnce) make_durable(pending_.size());
  return appended_;
}

void MemoryStore::write_oldest(std::size_t groups) {
  for (groups = std::min(groups, pending_.size()); groups > 0; --groups) {
    for (const core::Write& write : pending_.front()) disk_.apply(write);
    pending_.pop_front();
    ++durable_;
  }
}

void MemoryStore::make_durable(std::size_t groups) {
  if (groups == 0 || pending_.empty()) return;
  write_oldest(groups);
  if (callbacks_.durable) callbacks_.durable(durable_);
}

void MemoryStore::crash(std::size_t kept) {
  write_oldest(kept);
  pending_.clear();
  callbacks_ = {};
}

}  // namespace det::sim
