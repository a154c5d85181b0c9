// A step in progress: its time and its effects so far. The owners of the state get it as an argument.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "master/core/core.h"

namespace det::core {

/// Objects that a step has changed. Recording one allocates no memory, however often the step changes it: the
/// vector keeps its capacity between steps (`tests/bench/run.sh core`).
template <typename T>
class Touched {
 public:
  void insert(const T& object) {
    if (objects_.empty() || objects_.back() != &object) objects_.push_back(&object);
  }
  std::size_t size() const { return objects_.size(); }
  void clear() { objects_.clear(); }
  /// Returns the objects by id, each once: the order of rows must not depend on addresses.
  const std::vector<const T*>& sorted() {
    std::sort(objects_.begin(), objects_.end(), [](const T* a, const T* b) { return a->id < b->id; });
    objects_.erase(std::unique(objects_.begin(), objects_.end()), objects_.end());
    return objects_;
  }

 private:
  std::vector<const T*> objects_;
};

/// One object serves all steps of a core and keeps its memory. Empty between steps.
struct Step {
  Now now{};
  Effects* out = nullptr;

  // Objects to write at the end of the step.
  Touched<Experiment> experiments, ended_experiments;
  Touched<Trial> trials;
  Touched<Command> commands;
  Touched<Allocation> allocations;
  Touched<Pilot> pilots;
  /// The experiment that this step creates, with the user's text of its configuration.
  std::optional<std::pair<ExperimentId, std::string>> submitted;
  /// Rows that follow those of the touched objects, in the order of the step.
  std::vector<Write> inserts;
  /// Events for searchers, delivered at the end of the step (Experiments::settle).
  std::deque<std::pair<ExperimentId, searcher::Event>> events;

  void touch(const Experiment& experiment) { experiments.insert(experiment); }
  void touch(const Trial& trial) { trials.insert(trial); }
  void touch(const Command& command) { commands.insert(command); }
  void touch(const Allocation& allocation) { allocations.insert(allocation); }
  void touch(const Pilot& pilot) { pilots.insert(pilot); }
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
