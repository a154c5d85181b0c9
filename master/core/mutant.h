// Mutation testing: each mutant switches one safety rule of the core off, and a test proves that the
// simulator detects it. A production master runs with kNone; no flag and no configuration file sets another
// value. Mutants that a change of inputs, rows or effects can express are in tests/sim/boundary.h.
#pragma once

namespace det::core {

/// A safety rule that is switched off. The comment of each mutant is the wrong behavior.
enum class Mutant {
  kNone,

  // Runs, leases and deadlines.
  kSlotFreedAtKill,    ///< slots are free when the kill is sent, not when the process has exited
  kLostCounted,        ///< losing an agent consumes a restart
  kRestartNotCounted,  ///< a failed run does not consume a restart
  kLostForever,        ///< a trial that is lost each time, without a checkpoint, runs again without end
  kFinalRunAgain,      ///< a trial runs again after a failure that its program called final
  kRepeatRunAgain,     ///< a trial runs again after the same repeatable failure at the same batch
  kCanceledRunAgain,   ///< a trial runs again after a failure although a log policy has canceled its retries
  kNoReconnectDeadline,  ///< after a restart of the master, agents that never reconnect are never lost
  kValidationTwice,      ///< the searcher gets a validation again when a new run repeats it
  kNanBest,              ///< NaN may become the best metric
  kCheckpointMovesBack,  ///< a late report of an older checkpoint becomes the newest one
  kNoPreemptDeadline,    ///< a process that ignores its preemption may stay

  // Trials outside the cluster.
  kDetachedScheduled,  ///< a detached trial requests slots
  kDetachedForever,    ///< after a restart of the master, a detached trial without reports never fails

  // Builds.
  kBuildTakesSlots,     ///< a build requests the slots of its trial
  kBuildErrorRepeated,  ///< after a compile error, the next trial of the experiment builds again
  kBuildNotHandedOver,  ///< when the builder ends, the waiting trials get no other one

  // The search.
  kStopKeepsSlots,      ///< a trial that the searcher has stopped runs on
  kMissingMetricFatal,  ///< a validation without the searcher's metric fails the whole search

  // Queues and service.
  kMaxSlotsIgnored,    ///< an experiment gets more slots than its max_slots
  kQuotaIgnored,       ///< a user gets more slots than the quota
  kQuotaForgotten,     ///< after a restart of the master, quotas are unknown
  kDisabledScheduled,  ///< a disabled agent gets work
  kStoppingScheduled,  ///< an agent that has announced its stop gets work
  kMoveKeepsPosition,  ///< the scheduler is not updated after a move in the queue

  // Gangs.
  kGangOutlivesPart,  ///< the other parts of a gang live on when one has failed
  kGangFreedAtFirst,  ///< the slots of a gang are free when its first part has exited
  kLastExitCounts,    ///< a gang ends with the exit of its last part, not of the first that failed
  kPeerErrorCounted,  ///< the failure of a part after the loss of a peer's agent consumes a restart
  kHeldScheduled,     ///< activating an experiment gives slots to a trial that waits at a rung

  // Commands.
  kCommandRunsAgain,   ///< a lost command runs a second time
  kCommandForgotten,   ///< after a restart of the master, a waiting command is no longer in the queue
  kCommandPreempted,   ///< a command may be preempted
  kCommandKillLost,    ///< killing a running command changes its state only
  kPausedCommandRuns,  ///< pausing a command changes its state only

  // Pilots.
  kPilotsUnbounded,     ///< more pilots than max_pilots are submitted
  kPilotBusyReleased,   ///< a pilot is released while its agents run allocations
  kPilotNeverReleased,  ///< an idle pilot stays
  kPilotNotRepeated,    ///< a submission that was lost on the way is not sent again
  kPilotNumberReused,   ///< after a restart of the master, the number of an ended pilot is used again
  kEndingScheduled,     ///< an agent gets work although its pilot ends sooner than min_time_left
  kZombieScheduled,     ///< an agent of a released or ended pilot gets work
  kZombieNotCanceled,   ///< a job of a pilot that has ended for the master runs on
  kPilotRefusedAtOnce,  ///< a pilot that the engine refused is replaced without a delay
  kPilotShared,         ///< a pilot for one allocation takes any work
  kPilotUsedAgain,      ///< a pilot for one allocation takes a second one after the first
  kPilotUseForgotten,   ///< after a restart of the master, the use of such a pilot is unknown
  kSurplusNotReleased,  ///< such a pilot stays after its allocation has ended

  // Agents that come and go.
  kLeftNotForgotten,   ///< the settings of an agent that has left stay
  kOldHelloAccepted,   ///< the delayed first message of an earlier connection replaces a later connection
  kProblemScheduled,   ///< an agent with a problem gets work
  kExcludedScheduled,  ///< a trial runs again on an agent that a log policy has excluded
  kLinkForgotten,      ///< the scheduler does not know which slots of an agent are connected fast
  kFaultScheduled,     ///< a slot with a problem gets work
  kFaultCounted,       ///< a failure on a slot with a fault consumes a restart
  kCheckSkipped,       ///< an enabled slot gets work before the check of its device has been answered

  // Damaged checkpoints and leftovers.
  kDamageForgotten,     ///< a damaged checkpoint remains the one that runs start from
  kTokenForgotten,      ///< the hash of the token in a repeated start is not stored
  kTokenOutlives,       ///< the token of an ended allocation is still known
  kLeftoversForgotten,  ///< an agent gets work while processes of ended allocations still run there
};

}  // namespace det::core
