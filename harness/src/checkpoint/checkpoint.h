// Files of a trial's checkpoint, and starting from one. (checkpoint_saver.h saves them.)
//
//   state_dict.pth    models, optimizers, schedules, callbacks, random number generators; readable by
//                     Python's torch.load
//   optimizer_state_RANK_of_RANKS.pth   state of optimizers that are divided over the ranks
//   trial_state.json  counters, trial and run, metrics that are not reported yet
//   load_data.json    hyperparameters and experiment configuration
//   metadata.json     steps_completed, versions, entries added by callbacks
//   code/             the model directory
//   manifest.json     size and digest of all other files
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "harness/src/checkpoint/pickle.h"
#include "harness/src/client/client.h"
#include "harness/src/trial/run_info.h"
#include "harness/src/trial/wrapped_objects.h"

namespace det {

/// Maximum size of trial_state.json, which bounds the memory that a damaged or foreign file can take. Its
/// only part without a fixed size is the window.
constexpr std::int64_t kMaxTrialStateBytes = 16 << 20;
/// Maximum size of TrialState::window as compact JSON.
constexpr std::size_t kMaxWindowBytes = 8 << 20;

/// Counters in batches; -1 means never.
struct Progress {
  std::int64_t steps_completed = 0;
  std::int64_t last_validation = -1;
  std::int64_t last_checkpoint = -1;
  /// The checkpoint was saved before the validation that is due at its batch: a run that starts from it
  /// validates first.
  bool validation_due = false;
  /// Planned length of the run in which the trial requested a stop; -1: none was requested. A run that starts
  /// from the checkpoint stops, too, if its length is the same.
  std::int64_t stop_length = -1;
  std::optional<double> best_validation;  ///< best value of the searcher's metric so far
};

/// Contents of a checkpoint other than tensors.
struct TrialState {
  /// Counters of training.
  Progress progress;
  Json window;              ///< MetricWindow::save() of all ranks
  bool same_trial = false;  ///< after loading: saved by this trial, so its counters continue
};

/// Returns the contents of trial_state.json, load_data.json and metadata.json by name; `metadata` becomes the
/// last.
std::map<std::string, std::string> checkpoint_texts(const TrialInfo& info, const TrialState& state,
                                                    const Json& metadata);
/// Contents of metadata.json before callbacks add to it.
Json checkpoint_metadata(const TrialState& state);

/// Resolves `name` ("latest", a path, or a uuid in the storage) to a directory; "" when "latest" finds none.
/// Checkpoints in a bucket are downloaded. Any rank may call it. Throws std::runtime_error when the
/// checkpoint cannot be fetched.
std::string checkpoint_directory(const TrialInfo& info, const std::string& name);

/// Reads the tensors of a checkpoint. The manifest of this library's checkpoints is verified. Checkpoints of
/// Determined AI's Python library are accepted; their file may also be determined/state_dict.pth,
/// pedl/state_dict.pth or checkpoint.pt. Throws std::runtime_error.
pickle::Value read_state(const std::string& directory);

/// Number of batches already trained when training starts from `directory`; 0 for "" and for a checkpoint of
/// another trial.
std::int64_t checkpoint_steps(const TrialInfo& info, const std::string& directory);

/// Verifies and reads a checkpoint, calls on_checkpoint_load_start, then applies its state: all of it for the
/// same trial, the models for another one. Every rank must call it. A checkpoint of Determined AI's Python
/// library has no readable counters, so it starts a new trial with its weights and the state of its
/// optimizers, without their options. With `same_numbers` all ranks continue with the random numbers of rank
/// 0. Throws std::runtime_error naming the directory and the object that does not fit.
TrialState load_checkpoint(const RunInfo& run, WrappedObjects& wrapped, const std::string& directory,
                           bool same_numbers = false);

/// Copies the models of a checkpoint into the wrapped models, which must be equal in number. Throws
/// std::runtime_error.
void apply_models(WrappedObjects& wrapped, const std::string& directory);

}  // namespace det
