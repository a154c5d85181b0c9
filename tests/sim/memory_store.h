// A store in memory: rows as tables, and the crash contract of master/db/store/store.h. The test decides what
// becomes durable and what a crash keeps.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "master/db/store/store.h"

namespace det::sim {

/// The rows that survive a crash.
struct MemoryDisk {
  struct Validation {
    core::InsertValidation row;
    bool archived = false;
  };
  using ValidationKey = std::tuple<TrialId, RunNumber, std::int64_t>;

  std::map<ExperimentId, core::Experiment> experiments;
  std::map<TrialId, core::Trial> trials;
  std::map<CommandId, core::Command> commands;
  std::map<AllocationId, core::Allocation> allocations;
  std::map<ExperimentId, std::map<std::int64_t, std::string>> searcher_events;
  std::map<ExperimentId, core::PutSearcherSnapshot> searcher_snapshots;
  std::map<ValidationKey, Validation> validations;
  std::map<CheckpointId, core::InsertCheckpoint> checkpoints;
  std::vector<core::AppendTaskLog> logs;
  std::set<CheckpointId> damaged;
  std::map<AgentId, core::AgentSettings> agents;
  core::QuotaTable quotas;
  std::map<std::int64_t, core::Pilot> pilots;

  void apply(const core::Write& write);
  /// The newest sound checkpoint of the trial before `uuid`, which replaces a damaged one.
  std::optional<core::ReportDamage::Older> older(TrialId trial, const CheckpointId& uuid) const;
  /// The rows that a start loads: everything that has not ended, or experiment `one`.
  core::Recovered recover(std::optional<ExperimentId> one = std::nullopt) const;
};

class MemoryStore final : public db::Store {
 public:
  /// kAtOnce: durable when append returns. kManual: durable when make_durable is called.
  enum class Mode { kAtOnce, kManual };
  explicit MemoryStore(MemoryDisk& disk, Mode mode = Mode::kAtOnce) : disk_(disk), mode_(mode) {}

  Result<core::Recovered> load() override { return disk_.recover(); }
  db::Sequence append(std::vector<core::Write> group) override;
  void start(Callbacks callbacks) override { callbacks_ = std::move(callbacks); }
  void stop() override { make_durable(pending_.size()); }

  std::size_t pending() const { return pending_.size(); }
  /// Writes the oldest `groups` pending groups to the disk and reports them.
  void make_durable(std::size_t groups);
  /// Writes the oldest `kept` pending groups without a report and drops the rest. The store must not be used
  /// afterwards.
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
