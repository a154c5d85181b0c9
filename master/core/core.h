// State machine of the master. Deterministic and pure: `step` is a function of (state, input, now); no clock,
// no I/O, no lock, no protobuf. Called by one thread (master/loop).
//
// Invariants
//   A step is atomic: every error is returned before the first change, and all rows of a step are written in
//   one transaction.
//   Write-ahead: replies and messages of a step are released only after its rows are durable. A restarted
//   core therefore has everything that was ever acknowledged.
//   Bounded waits: every wait for an agent or a process has a deadline (`next_deadline`), so a lost one
//   cannot keep slots or a trial forever.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/stop_signal.h"
#include "master/core/effect.h"
#include "master/core/input.h"
#include "master/core/model.h"
#include "master/core/mutant.h"
#include "master/core/recovered.h"
#include "master/scheduler/fits.h"
#include "master/scheduler/scheduler.h"

namespace det::core {

/// The time of a step. `mono` drives deadlines, `wall` is stored and displayed.
struct Now {
  MonoTime mono;
  WallTime wall;
};

/// Supply of a pool by pilots. A pool without these rules has agents that administrators start.
struct PilotRules {
  std::string engine;      ///< name for people: "slurm" or "kubernetes"
  int max_pilots = 1;      ///< limit on pilots that have not ended
  int slots_per_node = 1;  ///< slots that the agent of a node offers
  int max_nodes = 1;       ///< limit on the nodes of one pilot
  /// A pilot without work for this long is released.
  Duration idle_timeout = std::chrono::minutes(5);
  /// No allocation starts on a pilot that ends sooner than this. 0: no limit.
  Duration min_time_left{};
  /// Each pilot is for one allocation, and is released when that has ended.
  bool per_allocation = false;
};

/// Timers and pool rules.
struct Options {
  /// Lease of an agent: an agent without a connection for this long ends its own processes.
  Duration agent_lease = std::chrono::minutes(10);
  /// Time from SIGTERM to SIGKILL on an agent, and for observing the exit.
  Duration agent_kill_grace = kDefaultKillGrace;
  /// Safety margin on top of the lease and the grace.
  Duration agent_margin = std::chrono::seconds(10);
  /// Interval at which an unanswered kill is repeated.
  Duration kill_repeat = std::chrono::seconds(30);
  /// A trial outside the cluster that sends no report for this long has failed.
  Duration detached_limit = std::chrono::minutes(5);
  /// The pool of experiments, commands and agents that name none.
  std::string default_pool = "default";
  /// Rules of pools that are not in `pools`.
  scheduler::Rules pool_rules;
  std::map<std::string, scheduler::Rules> pools;
  /// Rules of the pools of pilots.
  std::map<std::string, PilotRules> providers;
  /// Names this cluster within pilot names: letters, digits and hyphens. Set with `providers`.
  std::string cluster;
  /// Interval at which an unconfirmed submission or cancellation of a pilot is repeated.
  Duration pilot_repeat = std::chrono::seconds(30);
  /// Time from the start of a pilot until all of its agents have connected.
  Duration pilot_start = std::chrono::minutes(10);
  /// Number of searcher events between two snapshots of a searcher.
  int searcher_snapshot_every = 1000;
  /// Key of allocation tokens: 32 random bytes, fresh at each start of the process and never stored. The
  /// tokens of a core follow from it, so that steps stay deterministic.
  std::string token_key;
  Mutant mutant = Mutant::kNone;                          ///< set by tests only
  searcher::Fault search_fault = searcher::Fault::kNone;  ///< set by tests only
  /// Time until a disconnected agent is lost and its allocations may start elsewhere. Must exceed agent_lease
  /// + agent_kill_grace, otherwise two machines could run one trial.
  Duration agent_wait() const { return agent_lease + agent_kill_grace + agent_margin; }
};

/// The state of the master and its transitions. Not thread-safe.
class Core {
 public:
  /// Builds the state from the rows of the store. Live allocations wait for their agents to reconnect until
  /// now + agent_wait(); trials without an allocation wait for slots. Errors: kDataLoss (the rows contradict
  /// each other).
  static Result<Core> restore(const Options& options, Recovered recovered, Now now);

  Core(Core&&) noexcept;
  Core& operator=(Core&&) noexcept;
  ~Core();

  /// Applies one input and appends its effects to `out`. Marks pools with changed slots or requests as dirty;
  /// call `schedule` to act on that.
  void step(const Input& input, Now now, Effects& out);
  /// Starts waiting trials and preempts allocations in the dirty pools. No effect without one. The caller
  /// runs it once after each batch of steps, which makes one decision out of many changes.
  void schedule(Now now, Effects& out);
  /// Returns the time at which the next Tick is due, if there is any deadline.
  std::optional<MonoTime> next_deadline() const;

  // Read access for the API and for the invariants. Live objects only: ended experiments, commands and
  // allocations are in the store. References are valid until the next step.

  /// In no particular order.
  const std::unordered_map<ExperimentId, Experiment>& experiments() const;
  /// All trials of live experiments, ended ones included, in no particular order.
  const std::unordered_map<TrialId, Trial>& trials() const;
  const std::map<CommandId, Command>& commands() const;
  /// Returns the trial of a live experiment, or null. Null for a task of another kind.
  const Trial* trial(TaskKey task) const;
  /// Returns the trial that builds the code of an experiment for all its trials; 0 without a build.
  TrialId builder(ExperimentId id) const;
  /// Returns the live command, or null. Null for a task of another kind.
  const Command* command(TaskKey task) const;
  /// In no particular order.
  const std::unordered_map<AllocationId, Allocation>& allocations() const;
  /// The allocation of each token of a live allocation, by the hash of the token.
  const std::unordered_map<std::string, const Allocation*>& tokens() const;
  const std::map<AgentId, Agent>& agents() const;
  const std::map<std::string, scheduler::Scheduler>& pools() const;
  /// Administrators' settings by agent. An absent agent is in service.
  const std::map<AgentId, AgentSettings>& agent_settings() const;
  /// Limits of users and workspaces.
  const QuotaTable& quotas() const;
  /// Returns the agents of a pool in the form given to its scheduler.
  std::vector<scheduler::Agent> agents_of(const std::string& pool) const;
  /// Rules of the pools of pilots.
  const std::map<std::string, PilotRules>& providers() const;
  /// Pilots that have not ended, by name.
  std::map<std::string, Pilot> pilots() const;
  /// Returns why a pool gets no pilots, for people; "" without a known reason.
  std::string provider_problem(const std::string& pool) const;
  /// False for an agent of a pilot that is released or has ended: it takes no new work.
  bool admits(const AgentId& agent) const;
  /// The size of a pool: its agents, and the largest pilot that could join them.
  scheduler::PoolShape shape_of(const std::string& pool) const;
  const std::string& pool_of(const Experiment& experiment) const;
  const std::string& pool_of(const Command& command) const;
  /// Returns the searcher of a live experiment, or null.
  const searcher::Searcher* searcher(ExperimentId id) const;

 private:
  struct Impl;
  explicit Core(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::core
