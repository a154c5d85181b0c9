// Conversion of core::Write to Change.
#include "master/loop/change.h"

#include <optional>
#include <utility>
#include <variant>

namespace det::loop {
namespace {

constexpr std::size_t kMaxStates = 200'000;

template <class Id, class State>
bool remember(std::unordered_map<Id, State>& states, Id id, State state) {
  if (states.size() >= kMaxStates) states.clear();
  const auto [known, is_new] = states.try_emplace(id, state);
  const bool is_same = !is_new && known->second == state;
  known->second = std::move(state);
  return is_same;
}

/// Visitor of writes. Returns nothing for writes without interest for watchers.
struct ToChange {
  const std::unordered_map<TrialId, core::Trial>& trials;
  WrittenStates& states;

  Change of_trial(Change::Kind kind, TrialId id) const {
    Change change{.kind = kind, .trial = id};
    if (auto it = trials.find(id); it != trials.end()) {
      change.experiment = it->second.experiment;
      change.task = it->second.task;
    }
    return change;
  }

  std::optional<Change> operator()(const core::PutExperiment& write) const {
    return Change{.kind = Change::Kind::kExperiment,
                  .experiment = write.row.id,
                  .name = std::string(core::state_name(write.row.state)),
                  .progress = write.row.progress,
                  .same_state = states.repeats(write.row)};
  }
  std::optional<Change> operator()(const core::PutTrial& write) const {
    return Change{.kind = Change::Kind::kTrial,
                  .experiment = write.row.experiment,
                  .trial = write.row.id,
                  .task = write.row.task,
                  .name = std::string(core::state_name(write.row.state)),
                  .steps_completed = write.row.steps_completed,
                  .progress = write.row.progress,
                  .same_state = states.repeats(write.row)};
  }
  std::optional<Change> operator()(const core::PutCommand& write) const {
    return Change{.kind = Change::Kind::kCommand,
                  .task = write.row.task,
                  .name = std::string(core::state_name(write.row.state))};
  }
  std::optional<Change> operator()(const core::PutAllocation& write) const {
    const auto trial = write.row.task.as<TrialId>();
    // Allocation ids are TASK.RUN.
    const std::string& id = write.row.id.value;
    const TaskId task(id.substr(0, id.rfind('.')));
    if (!trial) {
      return Change{.kind = Change::Kind::kCommand,
                    .task = task,
                    .name = std::string(core::allocation_state_name(write.row.state))};
    }
    Change change = of_trial(Change::Kind::kAllocation, *trial);
    // The core may have dropped the trial in this step.
    change.task = task;
    change.name = core::allocation_state_name(write.row.state);
    return change;
  }
  std::optional<Change> operator()(const core::PutAgentSettings& write) const {
    return Change{.kind = Change::Kind::kAgent, .name = write.row.agent.value};
  }
  std::optional<Change> operator()(const core::DeleteAgent& write) const {
    return Change{.kind = Change::Kind::kAgent, .name = write.agent.value};
  }
  std::optional<Change> operator()(const core::InsertValidation& write) const {
    Change change = of_trial(Change::Kind::kMetrics, write.trial);
    change.name = "validation";
    change.steps_completed = write.steps_completed;
    return change;
  }
  std::optional<Change> operator()(const core::InsertCheckpoint& write) const {
    Change change = of_trial(Change::Kind::kCheckpoint, write.trial);
    change.name = write.uuid.value;
    change.steps_completed = write.steps_completed;
    return change;
  }
  std::optional<Change> operator()(const core::MarkDamaged& write) const {
    Change change = of_trial(Change::Kind::kCheckpoint, write.trial);
    change.name = write.uuid.value;
    return change;
  }
  std::optional<Change> operator()(const core::ArchiveMetrics& write) const {
    Change change = of_trial(Change::Kind::kMetrics, write.trial);
    // Metrics beyond this step were archived, so charts must reload.
    change.steps_completed = write.beyond;
    return change;
  }
  std::optional<Change> operator()(const core::AppendTaskLog& write) const {
    return Change{.kind = Change::Kind::kLogs, .task = write.task};
  }
  /// The list of agents and pilots of the cluster page follows one kind of changes.
  std::optional<Change> operator()(const core::PutPilot& write) const {
    return Change{.kind = Change::Kind::kAgent, .name = write.row.name};
  }
  // No watcher shows these.
  std::optional<Change> operator()(const core::PutQuota&) const { return std::nullopt; }
  std::optional<Change> operator()(const core::PutCapacity&) const { return std::nullopt; }
  std::optional<Change> operator()(const core::AppendSearcherEvent&) const { return std::nullopt; }
  std::optional<Change> operator()(const core::PutSearcherSnapshot&) const { return std::nullopt; }
};

}  // namespace

bool WrittenStates::repeats(const core::Experiment& row) {
  return remember(experiments_, row.id, {row.state, row.queue});
}
bool WrittenStates::repeats(const core::Trial& row) { return remember(trials_, row.id, row.state); }

void add_changes(const std::vector<core::Write>& group, std::size_t from,
                 const std::unordered_map<TrialId, core::Trial>& trials, WrittenStates& states,
                 std::vector<Change>& changes) {
  for (std::size_t i = from; i < group.size(); ++i) {
    if (auto change = std::visit(ToChange{trials, states}, group[i])) changes.push_back(std::move(*change));
  }
}

}  // namespace det::loop
