// Waits for the end of an experiment or of a deletion, and follows the log of an experiment's first trial.
#pragma once

#include <functional>

#include "common/client/session.h"
#include "det/v1/experiment.pb.h"
#include "det/v1/project.pb.h"

namespace det::cli {

/// Polls every `interval` until the experiment has ended, and returns it. Sets the client's patience to 10
/// minutes, so that a master restart does not interrupt the wait. Errors: those of Client::call().
Result<v1::Experiment> wait_for_end(Client& client, int experiment, Duration interval);

/// Returns 0 for a completed experiment, else 1.
int exit_code(const v1::Experiment& experiment);

/// Prints the first trial's log, and on stderr its state, elapsed time and throughput, until the experiment
/// has ended. Returns its exit_code(). Sets the client's patience as wait_for_end() does. Reads the log in a
/// second thread.
Result<int> follow_experiment(Client& client, int experiment);

/// Polls with `ask` every `interval` until it returns true or an error. Returns the error.
Status ask_until(Duration interval, const std::function<Result<bool>()>& ask);

/// Polls every second until the deleted object is not found. `get` returns it: a project or workspace.
/// Errors: kFailedPrecondition with the reason of a failed deletion.
template <typename Get>
Status wait_for_deletion(Get get) {
  return ask_until(std::chrono::seconds(1), [&]() -> Result<bool> {
    const auto now = get();
    if (!now && now.error().code == Code::kNotFound) return true;
    TRY(now);
    if (now->state() != v1::WORKSPACE_STATE_DELETE_FAILED) return false;
    return fail(Code::kFailedPrecondition, "not deleted: " + now->error_message());
  });
}

}  // namespace det::cli
