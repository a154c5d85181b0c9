// Owns staying with an experiment: waiting for its end, and the log of its first trial with a progress bar
// below.
#pragma once

#include "cli/session.h"
#include "det/v1/experiment.pb.h"

namespace det::cli {

/// Asks every `interval` until the experiment has ended; survives a master that is away for a while.
Result<v1::Experiment> wait_for_end(Client& client, int experiment, Duration interval);

/// The exit code an ended experiment means: 0 only when it has completed.
int exit_code(const v1::Experiment& experiment);

/// Prints the first trial's log until the experiment has ended; the exit code of its end.
Result<int> follow_experiment(Client& client, int experiment);

}  // namespace det::cli
