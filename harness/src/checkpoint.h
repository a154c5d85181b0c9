// Owns a trial's checkpoints: what files they hold, and starting from one. (Saving: checkpoint_saver.h.)
//
//   state_dict.pth    models, optimizers, schedules, callbacks, random number generators; Python's torch.load
//   opens it trial_state.json  counters, trial and run, the metric window that is not reported yet
//   load_data.json    hyperparameters and experiment configuration
//   metadata.json     steps_completed, versions, what callbacks added
//   code/             the model directory
//   manifest.json     size and digest of all of these
#pragma once

#include <map>
#include <string>

#include "client.h"
#include "context_state.h"
#include "pickle.h"
#include "progress.h"

namespace det {

/// Everything of a checkpoint that is not tensors.
struct TrialState {
  Progress progress;
  Json window;              ///< MetricWindow::save()
  bool same_trial = false;  ///< when loaded: it is this trial's own, so counters go on
};

/// trial_state.json, load_data.json and metadata.json by name; `metadata` is the content of the last.
std::map<std::string, std::string> checkpoint_texts(const ContextState& context, const TrialState& state,
                                                    const Json& metadata);
/// What metadata.json says before callbacks add to it.
Json checkpoint_metadata(const TrialState& state);

/// The directory meant by `name`: "latest", a path, or a uuid in the storage; "" when "latest" finds none.
/// What lies in a bucket is brought to this machine: any rank may call it. Throws std::runtime_error when it
/// cannot be.
std::string checkpoint_directory(const TrialInfo& info, const std::string& name);

/// Reads the tensors of a checkpoint: ours (its manifest is verified), or one that Python's Determined wrote,
/// whose file may also be determined/state_dict.pth, pedl/state_dict.pth or checkpoint.pt. Throws
/// std::runtime_error.
pickle::Value read_state(const std::string& directory);

/// Batches with which training from `directory` starts ("" is none): 0 when the checkpoint is another
/// trial's.
std::int64_t checkpoint_steps(const ContextState& context, const std::string& directory);

/// Verifies and reads all, calls on_checkpoint_load_start, then puts everything in place: random number
/// generators only of the same trial. Every rank calls it. A checkpoint written by Python's Determined has no
/// counters we can read: it starts a new trial from its weights and optimizers. Throws std::runtime_error
/// naming directory and object.
TrialState load_checkpoint(ContextState& context, const std::string& directory);

}  // namespace det
