// Mutants at the boundary of the core: they change its options, stored rows, inputs and effects, so that the
// rules inside of it need no switches. The simulated master applies them.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "master/core/core.h"

namespace det::sim {

/// A safety rule that is switched off outside of the core. The comment of each mutant is the wrong behavior;
/// core::Mutant has the others.
enum class BoundaryMutant {
  kNone,
  kReplyBeforeDurable,   ///< replies are released before the rows of their step are durable
  kSendBeforeDurable,    ///< messages are released before the rows of their step are durable
  kShortAgentWait,       ///< a disconnected agent is lost before its lease has expired
  kNoRunFence,           ///< reports of older runs are accepted
  kImpostorAccepted,     ///< another machine may take the name of an agent in use
  kRequestIdIgnored,     ///< a repeated submission creates a second experiment
  kCommandTwice,         ///< a repeated submission of a command creates a second one
  kServiceForgotten,     ///< after a restart of the master, disabled agents and slots are in service again
  kPreemptAckForgotten,  ///< an acknowledged preemption is forgotten when the master restarts
  kExcludedForgotten,    ///< after a restart of the master, excluded agents are allowed again
  kRetriesForgotten,     ///< after a restart of the master, canceled retries are allowed again
  kGangKillForgotten,    ///< after a restart of the master, the rest of a broken gang lives on
  kGangHalfStarted,      ///< only the first part of a gang is started
  kStartNotRepeated,     ///< a start that was lost on the way is not sent again
  kKillNotRepeated,      ///< a kill is sent once
  kForgetsToForget,      ///< an agent gets no AllocationForgotten
  kArchiveForgotten,     ///< a new run leaves metrics beyond its checkpoint visible
  kDamageKeepsRows,      ///< metrics beyond the checkpoint before a damaged one stay visible
  kPilotsForgotten,      ///< after a restart of the master, pilots are unknown
  kCancelNotRepeated,    ///< the cancellation of a pilot is sent once
  kMetricAfterDecision,  ///< a validation is stored after the searcher's decision on it, not with it
};

/// Applies one mutant. Lives as long as the simulated master, over all of its crashes.
class Boundary {
 public:
  explicit Boundary(BoundaryMutant mutant) : mutant_(mutant) {}

  core::Options options(core::Options options) const;
  /// The master starts with these rows.
  void restart(core::Recovered& rows);
  void change(core::Input& input, const core::Core& core);
  /// `input` caused the effects; null for the effects of Tick and of a decision.
  void change(core::Effects& effects, const core::Input* input);

 private:
  bool is(BoundaryMutant mutant) const { return mutant_ == mutant; }
  bool is_sent(const core::Send& send, const core::Input* input);
  bool is_written(const core::Write& write, const core::Input* input) const;

  const BoundaryMutant mutant_;
  std::set<RequestId> requests_;
  std::set<TaskId> tasks_;
  std::set<std::pair<AgentId, AllocationId>> kills_;  ///< kills that have been sent
  std::set<std::string> cancels_;                     ///< pilots with a sent cancellation
  std::vector<core::Write> late_;                     ///< rows for the next step
};

}  // namespace det::sim
