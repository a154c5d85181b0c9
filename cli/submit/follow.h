// Waits for the end of an experiment, and follows the log of its first trial.
#pragma once

#include "common/client/session.h"
#include "det/v1/experiment.pb.h"

namespace det::cli {

/// Polls every `interval` until the experiment has ended, and returns it. Sets the client's patience to 10
/// minutes, so that a master restart does not interrupt the wait. Errors: those of Client::call().
Result<v1::Experiment> wait_for_end(Client& client, int experiment, Duration interval);

/// Returns 0 for a completed experiment, else 1.
int exit_code(const v1::Experiment& experiment);

/// Prints the first trial's log, with a progress bar on a terminal, until the experiment has ended. Returns
/// its exit_code(). Sets the client's patience as wait_for_end() does. Reads the log in a second thread.
Result<int> follow_experiment(Client& client, int experiment);

}  // namespace det::cli
