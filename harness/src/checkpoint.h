// Owns a trial's checkpoints: what files they hold, saving one, and starting from one.
//
//   state_dict.pth    models, optimizers, random number generators; Python's torch.load opens it
//   trial_state.json  counters, trial and run, the metric window that is not reported yet
//   load_data.json    hyperparameters and experiment configuration
//   metadata.json     steps_completed, versions
//   code/             the model directory
//   manifest.json     size and SHA-256 of all of these
#pragma once

#include <string>

#include "client.h"
#include "context_state.h"
#include "progress.h"

namespace det {

/// Everything of a checkpoint that is not tensors.
struct TrialState {
  Progress progress;
  Json window;  ///< MetricWindow::save()
  bool same_trial = false;  ///< when loaded: it is this trial's own, so counters go on
};

/// Saves now. The record is of a checkpoint that is on disk whole. Throws std::runtime_error; then nothing is there.
CheckpointRecord save_checkpoint(ContextState& context, const TrialState& state);

/// The directory meant by `name`: "latest", a path, or a uuid in the storage; "" when "latest" finds none.
std::string checkpoint_directory(const TrialInfo& info, const std::string& name);

/// Verifies, then puts models, optimizers and (of the same trial) generators in place. Throws std::runtime_error.
TrialState load_checkpoint(ContextState& context, const std::string& directory);

}  // namespace det
