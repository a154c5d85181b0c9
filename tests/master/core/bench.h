// Bench for core tests: a core over a store in memory, a clock moved by hand, and short calls for the actions
// of users, agents and harnesses. The invariants are checked after every step.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "master/core/core.h"
#include "tests/sim/memory_store.h"

namespace det::core {

const TrialId kTrial{1};  ///< The first trial that a bench submits.

/// The error code of a refused input. Fails the test if the reply is missing or a success.
Code code_of(const std::optional<Result<ReplyValue>>& reply);

class Bench {
 public:
  explicit Bench(Options options = {});

  /// Steps, schedules, writes. Returns the reply, if there is one.
  std::optional<Result<ReplyValue>> step(Input input);
  /// Moves the clock from deadline to deadline until `duration` has passed.
  void pass(Duration duration);
  /// Builds a new core from the stored rows, with another monotonic clock.
  void restart();

  std::shared_ptr<expconf::ExperimentConfig> config(int slots = 1, int max_restarts = 2,
                                                    int priority = 42) const;
  ExperimentId submit(std::shared_ptr<const expconf::ExperimentConfig> config,
                      const std::string& request = "");
  std::optional<Result<ReplyValue>> act(ExperimentId id, ExperimentAction action);
  std::optional<Result<ReplyValue>> connect(const std::string& agent, int slots,
                                            std::vector<HeldAllocation> held = {},
                                            const std::string& instance = "", bool ephemeral = false);
  /// An ephemeral agent has left.
  void leave(const std::string& agent);
  void disconnect(const std::string& agent);
  /// Announces the stop of an agent. `older`: on a link that has been replaced.
  void announce_stop(const std::string& agent, bool older = false);
  /// Reports why an agent takes no new work; "": it can again.
  void report_problem(const std::string& agent, const std::string& problem);
  /// Reports a state from the agent that runs part `part` of the task's allocation.
  void update(TaskKey task, AllocationState state, std::optional<Exit> exit = std::nullopt,
              std::size_t part = 0);
  void exit(TaskKey task, ExitKind kind, std::size_t part = 0);
  Result<ReplyValue> attach(TrialId trial, RunNumber run);
  Result<ReplyValue> validate(TrialId trial, RunNumber run, std::int64_t steps, std::optional<double> metric);
  Result<ReplyValue> checkpoint(TrialId trial, RunNumber run, std::int64_t steps, const std::string& uuid);

  const core::Core& core() const { return *core_; }
  WallTime wall() const { return wall_; }
  const sim::MemoryDisk& disk() const { return disk_; }
  const Trial& trial(TrialId id) const { return disk_.trials.at(id); }
  const Experiment& experiment(ExperimentId id) const { return disk_.experiments.at(id); }
  const Allocation* live(TaskKey task) const;
  /// The messages of type T that the last step and its schedule sent.
  template <typename T>
  std::vector<T> sends() const {
    std::vector<T> found;
    for (const Send& send : effects_.sends) {
      if (auto* one = std::get_if<T>(&send)) found.push_back(*one);
    }
    return found;
  }

 private:
  Now now() const { return {mono_, wall_}; }

  Options options_;
  sim::MemoryDisk disk_;
  std::optional<Core> core_;
  MonoTime mono_{1000};
  WallTime wall_{1700000000000000};
  std::uint64_t next_session_ = 1;
  std::map<std::string, std::uint64_t> sessions_;
  int next_request_ = 1;
  Effects effects_;
};

}  // namespace det::core
