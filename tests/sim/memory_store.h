// Owns a store that lives in memory: the rows as tables, and the crash contract of master/db/store.h with
// every choice (what became durable, what a crash keeps) in the hands of the test.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "master/db/store.h"

namespace det::sim {

/// What survives a crash.
struct MemoryDisk {
  struct Validation {
    core::InsertValidation row;
    bool archived = false;
  };
  using ValidationKey = std::tuple<TrialId, RunNumber, std::int64_t>;

  std::map<ExperimentId, core::Experiment> experiments;
  std::map<TrialId, core::Trial> trials;
  std::map<core::CommandId, core::Command> commands;
  std::map<AllocationId, core::Allocation> allocations;
  std::map<ExperimentId, std::map<std::int64_t, std::string>> searcher_events;
  std::map<ExperimentId, core::PutSearcherSnapshot> searcher_snapshots;
  std::map<ValidationKey, Validation> validations;
  std::map<CheckpointId, core::InsertCheckpoint> checkpoints;
  std::vector<core::AppendTaskLog> logs;
  std::set<CheckpointId> damaged;
  std::map<AgentId, core::AgentSettings> agents;

  void apply(const core::Write& write);
  /// What stands in for the checkpoint `uuid` of the trial, as the rows say.
  std::optional<core::ReportDamage::Older> older(TrialId trial, const CheckpointId& uuid) const;
  /// As a start reads it.
  /// All that has not ended, or else one experiment.
  core::Recovered recover(std::optional<ExperimentId> one = std::nullopt) const;
};

class MemoryStore final : public db::Store {
 public:
  /// kAtOnce: durable when append returns. kManual: when make_durable says so.
  enum class Mode { kAtOnce, kManual };
  explicit MemoryStore(MemoryDisk& disk, Mode mode = Mode::kAtOnce) : disk_(disk), mode_(mode) {}

  Result<core::Recovered> load() override { return disk_.recover(); }
  db::Sequence append(std::vector<core::Write> group) override;
  void start(Callbacks callbacks) override { callbacks_ = std::move(callbacks); }
  void stop() override { make_durable(pending_.size()); }

  std::size_t pending() const { return pending_.size(); }
  /// The oldest `groups` of the pending ones reach the disk, and are reported.
  void make_durable(std::size_t groups);
  /// The machine stops: the oldest `kept` pending groups reach the disk without a report, the rest is lost.
  /// The store is then of no more use.
  void crash(std::size_t kept);

 private:
  void write_oldest(std::size_t groups);

  MemoryDisk& disk_;
  Mode mode_;
  Callbacks callbacks_;
  db::Sequence appended_ = 0, durable_ = 0;
  std::deque<std::vector<core::Write>> pending_;
};

}  // namespace det::sim
