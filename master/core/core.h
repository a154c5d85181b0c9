// Owns the rules: what an input changes and what follows from it. One thread, no clock, no I/O, no lock, no
// protobuf: `step` is a function of (state, input, now). Inside a step every refusal comes before the first
// change.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/kill_grace.h"
#include "master/core/effect.h"
#include "master/core/input.h"
#include "master/core/model.h"
#include "master/core/mutant.h"
#include "master/core/recovered.h"
#include "master/scheduler/scheduler.h"

namespace det::core {

struct Now {
  MonoTime mono;
  WallTime wall;
};

/// Timers. Checked when the master starts: agent_wait() > agent_lease + agent_kill_grace, or two machines
/// could run one trial.
struct Options {
  Duration agent_lease = std::chrono::minutes(10);  ///< an agent cut off for this long ends its own processes
  Duration agent_kill_grace = kDefaultKillGrace;    ///< SIGTERM to SIGKILL, and the time to see it
  Duration agent_margin = std::chrono::seconds(10);
  Duration kill_repeat = std::chrono::seconds(30);  ///< an unanswered kill is sent again
  /// A trial outside the cluster that is silent for this long has failed.
  Duration unmanaged_limit = std::chrono::minutes(5);
  std::string default_pool = "default";
  scheduler::Rules pool_rules;  ///< of pools that have none of their own
  std::map<std::string, scheduler::Rules> pools;
  int searcher_snapshot_every = 1000;                     ///< events
  Mutant mutant = Mutant::kNone;                          ///< never set outside tests
  searcher::Fault search_fault = searcher::Fault::kNone;  ///< likewise
  Duration agent_wait() const { return agent_lease + agent_kill_grace + agent_margin; }
};

class Core {
 public:
  /// Takes up where the store left off: live allocations wait for their agents until now + agent_wait().
  /// Fails (kDataLoss) when the rows contradict each other.
  static Result<Core> restore(const Options& options, Recovered recovered, Now now);

  Core(Core&&) noexcept;
  Core& operator=(Core&&) noexcept;
  ~Core();

  /// Appends to `out`; never removes from it. Marks the schedule dirty where slots or requests changed.
  void step(const Input& input, Now now, Effects& out);
  /// Gives free slots to waiting trials and pre-empts for those with a better claim; nothing when not dirty.
  /// Called once after each batch of steps.
  void schedule(Now now, Effects& out);
  /// When the next Tick is due, if anything waits for time to pass.
  std::optional<MonoTime> next_deadline() const;

  // Read access, for the API's view of live things and for the invariants.
  const std::map<ExperimentId, Experiment>& experiments() const;
  const std::unordered_map<TrialId, Trial>& trials() const;                 ///< in no order
  const std::map<CommandId, Command>& commands() const;                     ///< that have not ended
  const std::unordered_map<AllocationId, Allocation>& allocations() const;  ///< likewise
  const std::map<AgentId, Agent>& agents() const;
  const std::map<std::string, scheduler::Scheduler>& pools() const;
  /// In service unless it is in here.
  const std::map<AgentId, AgentSettings>& agent_settings() const;
  /// The agents of a pool as its scheduler knows them.
  std::vector<scheduler::Agent> agents_of(const std::string& pool) const;
  const std::string& pool_of(const Experiment& experiment) const;
  const std::string& pool_of(const Command& command) const;
  const searcher::Searcher* searcher(ExperimentId id) const;

 private:
  struct Impl;
  explicit Core(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::core
