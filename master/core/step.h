// A step in progress: its time and its effects so far. The owners of the state get it as an argument.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "master/core/core.h"

namespace det::core {

/// One object serves all steps of a core and keeps its memory. Empty between steps.
struct Step {
  /// Ordered by id: the order of rows must not depend on addresses.
  struct ById {
    template <typename T>
    bool operator()(const T* a, const T* b) const {
      return a->id < b->id;
    }
  };
  template <typename T>
  using Touched = std::set<const T*, ById>;

  Now now{};
  Effects* out = nullptr;

  // Objects to write at the end of the step.
  Touched<Experiment> experiments, ended_experiments;
  Touched<Trial> trials;
  Touched<Command> commands;
  Touched<Allocation> allocations;
  /// The experiment that this step creates, with the user's text of its configuration.
  std::optional<std::pair<ExperimentId, std::string>> submitted;
  /// Rows that follow those of the touched objects, in the order of the step.
  std::vector<Write> inserts;
  /// Events for searchers, delivered at the end of the step (Experiments::settle).
  std::deque<std::pair<ExperimentId, searcher::Event>> events;

  void touch(const Experiment& experiment) { experiments.insert(&experiment); }
  void touch(const Trial& trial) { trials.insert(&trial); }
  void touch(const Command& command) { commands.insert(&command); }
  void touch(const Allocation& allocation) { allocations.insert(&allocation); }
  template <typename Row>
  void insert(Row row) {
    inserts.emplace_back(std::move(row));
  }
  template <typename Message>
  void send(Message message) {
    out->sends.emplace_back(std::move(message));
  }
  /// Appends a line to the task log of a run.
  void log(const TaskId& task, RunNumber run, std::string text, std::string level = "INFO") {
    insert(AppendTaskLog{task, allocation_id(task, run), std::move(level), std::move(text), now.wall});
  }
  void log(const Trial& trial, RunNumber run, std::string text, std::string level = "INFO") {
    log(trial.task, run, std::move(text), std::move(level));
  }
};

}  // namespace det::core
