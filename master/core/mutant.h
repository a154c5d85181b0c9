// Mutation testing: each mutant switches one safety rule of the core off, and a test proves that the
// simulator detects it. A production master runs with kNone; no flag and no configuration file sets another
// value.
#pragma once

namespace det::core {

/// A safety rule that is switched off. The comment of each mutant is the wrong behavior.
enum class Mutant {
  kNone,

  // Fencing, leases and messages that are lost on the way.
  kNoRunFence,           ///< reports of older runs are accepted
  kShortAgentWait,       ///< a disconnected agent is lost before its lease has expired
  kSlotFreedAtKill,      ///< slots are free when the kill is sent, not when the process has exited
  kForgetsToForget,      ///< an agent gets no AllocationForgotten for an unknown allocation
  kLostCounted,          ///< losing an agent consumes a restart
  kRestartNotCounted,    ///< a failed run does not consume a restart
  kNoReconnectDeadline,  ///< after a restart of the master, agents that never reconnect are never lost
  kValidationTwice,      ///< the searcher gets a validation again when a new run repeats it
  kRequestIdIgnored,     ///< a repeated submission creates a second experiment
  kNanBest,              ///< NaN may become the best metric
  kPreemptAckForgotten,  ///< an acknowledged preemption is forgotten when the master restarts
  kImpostorAccepted,     ///< another machine may take the name of an agent in use
  kArchiveForgotten,     ///< a new run leaves metrics beyond its checkpoint visible
  kCheckpointMovesBack,  ///< a late report of an older checkpoint becomes the newest one
  kKillNotRepeated,      ///< a kill is sent once
  kStartNotRepeated,     ///< a start that was lost on the way is not sent again
  kNoPreemptDeadline,    ///< a process that ignores its preemption may stay

  // Trials outside the cluster.
  kUnmanagedScheduled,  ///< an unmanaged trial requests slots
  kUnmanagedForever,    ///< after a restart of the master, an unmanaged trial without reports never fails

  // The search.
  kStopKeepsSlots,       ///< a trial that the searcher has stopped runs on
  kMissingMetricFatal,   ///< a validation without the searcher's metric fails the whole search
  kMetricAfterDecision,  ///< a validation is stored after the searcher's decision on it, not with it

  // Queues and service.
  kMaxSlotsIgnored,    ///< an experiment gets more slots than its max_slots
  kServiceForgotten,   ///< after a restart of the master, disabled agents and slots are in service again
  kDisabledScheduled,  ///< a disabled agent gets work
  kMoveKeepsPlace,     ///< the scheduler is not updated after a move in the queue

  // Gangs.
  kGangHalfStarted,    ///< only the first part of a gang is started
  kGangOutlivesPart,   ///< the other parts of a gang live on when one has failed
  kGangFreedAtFirst,   ///< the slots of a gang are free when its first part has exited
  kLastExitCounts,     ///< a gang ends with the exit of its last part, not of the first that failed
  kPeerErrorCounted,   ///< the failure of a part after the loss of a peer's agent consumes a restart
  kGangKillForgotten,  ///< after a restart of the master, the rest of a broken gang lives on
  kHeldScheduled,      ///< activating an experiment gives slots to a trial that waits at a rung

  // Commands.
  kCommandRunsAgain,  ///< a lost command runs a second time
  kCommandForgotten,  ///< after a restart of the master, a waiting command is no longer in the queue
  kCommandPreempted,  ///< a command may be preempted
  kCommandKillLost,   ///< killing a running command changes its state only

  // Damaged checkpoints and leftovers.
  kDamageForgotten,     ///< a damaged checkpoint remains the one that runs start from
  kDamageKeepsRows,     ///< metrics beyond the checkpoint before the damaged one stay visible
  kLeftoversForgotten,  ///< an agent gets work while processes of ended allocations still run there
  kCommandTwice,        ///< a repeated submission of a command creates a second one
};

}  // namespace det::core
