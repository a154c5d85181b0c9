// State of a Scheduler: agents (Fleet), waiting requests and potential victims (Queue) and allocations.
// Internal to master/scheduler; same single thread as the Scheduler.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "master/scheduler/fleet.h"
#include "master/scheduler/queue.h"
#include "master/scheduler/scheduler.h"
#include "master/scheduler/shared_table.h"

namespace det::scheduler {

/// Contents of an image. The tables share their memory with the pool (copy-on-write).
struct Image::State {
  /// An allocation. `terminating` is the value at the time of the image; Running::terminating is the one at
  /// its start.
  struct Runs {
    std::shared_ptr<const Running> running;
    bool terminating = false;
  };
  Rules rules;
  std::shared_ptr<const std::vector<Agent>> agents;
  std::vector<Quota> quotas;
  SharedTable<Job>::Copy jobs;
  SharedTable<Request>::Copy waiting;
  SharedTable<Runs>::Copy running;
};

/// The whole state behind a Scheduler. Its functions are those of Scheduler (see there for contracts); they
/// keep queue, fleet, allocations and the tables of images consistent.
struct Pool {
  explicit Pool(Rules rules_in)
      : rules(std::move(rules_in)), fleet(rules.policy == Policy::kPriority), queue(rules) {}
  Pool(const Pool&) = delete;

  Rules rules;
  Fleet fleet;
  Queue queue;
  SharedTable<Request> waiting;                       ///< requests by task
  std::unordered_map<TaskKey, RunningState> running;  ///< allocations by task; addresses are stable
  std::vector<Hold> holds;                            ///< of the last pass

  /// Returns the excluded agents of a shape, ascending.
  const std::vector<AgentId>& excluded(const Shape& shape) const {
    return excluded_sets_[static_cast<std::size_t>(shape.excluded)];
  }
  bool preempts() const { return rules.preemption && rules.policy != Policy::kRoundRobin; }
  void load(const Snapshot& snapshot);
  Image::State image();
  void put_agent(Agent agent);
  void remove_agent(const AgentId& id);
  void put_job(const Job& job);
  void remove_job(JobKey id);
  void put_request(const Request& request);
  void withdraw(TaskKey task);
  void start(Running started);
  /// Starts the first request of the line that is not a holder. `nodes` are the agents of its parts, in
  /// order: spares the lookups of the other overload.
  void start(JobState& job, const Shape& shape, Running started, std::vector<Node*> nodes);
  void terminate(RunningState& state);
  void end(TaskKey task);

 private:
  template <typename Change>
  void change_nodes(RunningState& state, const Change& change);
  void begin(JobState& job, Running started, std::vector<Node*> nodes);
  void forget(JobState& job);
  Shape shape_of(const Request& request);
  /// Returns the number of a set of excluded agents.
  int number_of(const std::vector<AgentId>& agents);
  /// Frees the numbers of the sets that no request has.
  void forget_excluded_sets();

  // Copies for images of what the queue, `running` and the fleet contain.
  SharedTable<Job> jobs_;
  SharedTable<Image::State::Runs> runs_;
  std::vector<std::vector<AgentId>> excluded_sets_{{}};  ///< by number
  std::map<std::vector<AgentId>, int> excluded_numbers_{{{}, 0}};
  std::vector<int> free_numbers_;                     ///< of forgotten sets
  std::size_t max_numbers_ = 16;                      ///< unused sets are forgotten beyond it
  std::shared_ptr<const std::vector<Agent>> agents_;  ///< null after a change of an agent; built by image()
};

/// Runs one pass over the queue and appends its decisions to `plan`. Returns false when it decided nothing.
bool walk(Pool& pool, Plan& plan);

}  // namespace det::scheduler
