// Owns the names of the safety rules that a test may switch off, to prove that the simulator would notice. A
// master that people use runs with kNone: no flag and no file leads here.
#pragma once

namespace det::core {

enum class Mutant {
  kNone,
  kNoRunFence,           ///< reports of older runs are taken
  kShortAgentWait,       ///< a silent agent is given up before its lease ends
  kSlotFreedAtKill,      ///< slots are free when the kill is sent, not when the process has gone
  kForgetsToForget,      ///< an agent is not told that nobody knows what it holds
  kLostCounted,          ///< losing an agent uses up a restart
  kRestartNotCounted,    ///< a failure does not
  kNoReconnectDeadline,  ///< after a restart of the master, agents that never come back are waited for
  kValidationTwice,      ///< the searcher hears a validation again when a new run repeats it
  kRequestIdIgnored,     ///< a repeated submission makes a second experiment
  kNanBest,              ///< NaN may become the best metric
  kPreemptAckForgotten,  ///< an acknowledged pre-emption is forgotten when the master restarts
  kImpostorAccepted,     ///< another machine may take a connected agent's name
  kArchiveForgotten,     ///< a new run leaves the rows beyond its checkpoint visible
  kCheckpointMovesBack,  ///< a late report of an older checkpoint becomes the newest
  kKillNotRepeated,      ///< a kill is sent once
  kStartNotRepeated,     ///< a start lost on the way is not sent again
  kNoPreemptDeadline,    ///< a process that ignores its pre-emption may stay
  kUnmanagedScheduled,   ///< a trial outside the cluster asks for slots like any other
  kUnmanagedForever,     ///< after a restart of the master, one that never comes back is waited for
  kStopKeepsSlots,       ///< a trial that the search has stopped runs on (W1)
  kMissingMetricFatal,   ///< a validation without the searcher's metric fails the whole search (W3)
  kMetricAfterDecision,  ///< a validation is stored after the searcher has decided on it, not with it (W4)
  kMaxSlotsIgnored,      ///< an experiment gets more slots than its max_slots
  kServiceForgotten,     ///< after a restart of the master, what is out of service is in it again
  kDisabledScheduled,    ///< an agent out of service is given work
  kMoveKeepsPlace,       ///< a new place in the queue is not told to the scheduler
  kGangHalfStarted,      ///< only the first part of a gang is started
  kGangOutlivesPart,     ///< the others of a gang live on when one has failed
  kGangFreedAtFirst,     ///< the slots of a gang are free when its first part has gone
  kLastExitCounts,       ///< a gang ends as its last part does, not as the first that failed
  kPeerErrorCounted,     ///< what the others of a gang say when an agent is lost uses up a restart
  kGangKillForgotten,    ///< after a restart of the master, what is left of a broken gang lives on
  kHeldScheduled,        ///< a trial that waits at a rung is given slots when its experiment is activated
  kCommandRunsAgain,     ///< a command that was lost runs once more
  kCommandForgotten,     ///< after a restart of the master, a command that waits is no longer in the queue
  kCommandPreempted,     ///< a command may be asked to leave for a more important trial
  kCommandKillLost,      ///< killing a command that runs is only noted
  kDamageForgotten,      ///< a trial's damaged checkpoint stays the one that it starts from
  kDamageKeepsRows,      ///< what was reported beyond the checkpoint before the damaged one stays visible
  kLeftoversForgotten,  ///< an agent is given work while something runs there that is over for everybody else
  kCommandTwice,        ///< a repeated submission of a command makes a second one
};

}  // namespace det::core
