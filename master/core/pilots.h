// Owner of pilots: submits them for requests that no agent can hold, and releases idle ones. Pure, like the
// rest of the core; engines (Slurm) carry out its SubmitPilot and CancelPilot and report PilotState.
//
// A pilot is durable before it is submitted, and its name is never used again, so a submission may be
// repeated until the engine confirms it. Agents of a pilot that is released or has ended take no new work:
// late jobs and leftover ones are harmless.
//
// A pilot for one allocation (PilotRules::per_allocation) is for a number of slots. The first request of
// exactly this number takes it, in the order of the policy; the scheduler places it on all of its agents
// (scheduler::Exclusive). From then on the pilot takes no work, and it is released with its allocation.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "master/core/core.h"

namespace det::core {

struct Owners;
struct Step;

/// The slots of a pilot that requests may wait for.
struct PilotRoom {
  std::vector<int> nodes;    ///< free slots of each node
  std::optional<int> slots;  ///< as Pilot::slots
};
/// The size of a pilot.
struct PilotSize {
  int nodes = 1;
  std::optional<int> slots;  ///< as Pilot::slots
  bool operator==(const PilotSize&) const = default;
};

/// Pilots that a demand needs.
struct PilotNeed {
  std::vector<bool> used;          ///< by index of `coming`: the demand needs this one
  std::vector<PilotSize> further;  ///< pilots to submit
};
/// Packs requests in their order into pilots that are coming and into at most `further` new ones. A request
/// that fits no pilot of these rules needs none. Pure.
PilotNeed pack(const std::vector<scheduler::Demand>& demand, std::vector<PilotRoom> coming,
               const PilotRules& rules, int further);

class Pilots {
 public:
  explicit Pilots(Owners& owners) : owners_(owners) {}

  // Inputs; see input.h for their contracts.
  void handle(Step& step, const PilotState& input);
  void handle(Step& step, const ProviderState& input);

  /// Closes the agents of pilots with too little time left (PilotRules::min_time_left), and opens them again
  /// when their end was moved. Precedes each decision of the pool's scheduler.
  void close_ending(Now now, const std::string& pool);
  /// Adapts the pilots of a pool to its demand: submits, repeats and releases. Follows each decision of the
  /// pool's scheduler and each expiry of its timer. Ends the pilots of a pool without a provider.
  void adapt(Step& step, const std::string& pool);
  /// An agent has connected, so its pilot runs.
  void agent_connected(Step& step, const AgentId& agent);
  /// False for an agent of a pilot that is released, has ended, ends soon, or has had its one allocation.
  bool admits(const AgentId& agent) const;
  /// Returns the set of the agents of a pilot for one allocation.
  std::optional<scheduler::Exclusive> exclusive(const AgentId& agent) const;

  std::map<std::string, Pilot> all() const;
  /// Returns why a pool gets no pilots, for people; "" without a known reason.
  std::string problem(const std::string& name) const;
  /// Removes ended pilots after their rows have been written.
  void forget_ended();
  /// Errors: kDataLoss (a pilot has ended or is there twice).
  Status restore(std::vector<Pilot> rows, std::int64_t next, Now now);

 private:
  /// A pilot and what a restart recomputes.
  struct Live {
    Pilot row;
    std::optional<MonoTime> idle_since, running_since;
    MonoTime repeat_at;   ///< of an unconfirmed submission or cancellation
    bool worked = false;  ///< an allocation has been on its agents
    bool ending = false;  ///< too little time is left for new work
  };
  struct Pool {
    std::string problem;
    int failures = 0;     ///< pilots in a row that ended without work
    std::string failure;  ///< reason of the last of them
    MonoTime retry_at;
  };

  bool is_busy(const Pilot& pilot) const;
  SubmitPilot submission(const Pilot& row) const;
  /// Returns the free slots of a pilot that is submitted or starts; nothing for any other one.
  std::optional<PilotRoom> room(const Live& live, const PilotRules& rules, Now now) const;
  void start(Step& step, Live& live);
  void submit(Step& step, const std::string& pool, const PilotSize& size);
  /// The agents of a pilot have work.
  void use(Step& step, Live& live);
  /// Sends an unconfirmed submission or cancellation again when it is due.
  void repeat(Step& step, Live& live);
  void release(Step& step, Live& live, const std::string& reason);
  void end(Step& step, Live& live, const std::string& reason);
  /// Counts a pilot without work, and delays the next submission: 5 s, doubled up to 10 min.
  void count_failure(Pool& pool, const std::string& reason, Now now);
  /// Updates the scheduler about the agents of a pilot.
  void put_agents(const Pilot& pilot);
  void set_timer(const std::string& pool, Now now);

  Owners& owners_;
  std::map<std::string, Live> pilots_;
  std::map<std::string, Pool> pools_;
  std::int64_t next_ = 1;
};

}  // namespace det::core
