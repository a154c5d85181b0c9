// Exit codes by which a training program reports the kind of its failure to the agent and the master.
// Users' programs may use them, too: harness/guides/core_api.md, "Exit codes".
#pragma once

namespace det {

/// Exit codes of a training program.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,        ///< a restart may succeed
  kExitStaleRun = 80,     ///< the master runs this trial in another process
  kExitFinal = 81,        ///< a restart cannot succeed: source, configuration or hyperparameters are refused
  kExitStorageFull = 82,  ///< a checkpoint could not be saved for lack of space
  /// The failure depends on nothing but the state of training and its records: a run with the same last line
  /// `error: …`, which names the batch, fails again.
  kExitRepeatable = 83,
};

}  // namespace det
