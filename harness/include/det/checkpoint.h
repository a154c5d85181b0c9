// Use of finished checkpoints outside training: loading weights, rebuilding a trial, exporting to
// safetensors.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>

#include "det/context.h"

namespace det {

/// Copies the weights of the `model_index`-th wrapped model of a checkpoint into `model`. Verifies the
/// manifest first; reading a checkpoint executes no code. Checkpoints written by any release of Determined
/// AI's Python library are accepted when the tensor names match. Throws std::runtime_error naming the file or
/// the tensor that does not fit.
void load_model(const std::string& checkpoint_directory, torch::nn::Module& model, int model_index = 0);

/// Creates a context for a trial that is used rather than trained: it reports nothing and installs no signal
/// handlers. Hyperparameters and experiment configuration are the arguments, or those saved in the checkpoint
/// directory `path` (load_data.json). Throws std::runtime_error naming the file.
std::unique_ptr<TrialContext> make_load_context(const Json& hparams, const Json& experiment_config);
std::unique_ptr<TrialContext> make_load_context(const std::string& path);
/// Copies a checkpoint's weights into all models that the trial wrapped, in the order of wrapping. Errors as
/// load_model, and when the number of models differs.
void load_models(TrialContext& context, const std::string& path);

/// A trial outside training, with the context it was built from. The context is destroyed after the trial.
template <typename T>
struct LoadedTrial {
  std::unique_ptr<TrialContext> context;
  std::unique_ptr<T> trial;
  T* operator->() const { return trial.get(); }
  T& operator*() const { return *trial; }
};

/// Builds the trial class T from `det::TrialContext&` and `arguments`, with the hyperparameters of a
/// checkpoint, and loads the weights of its models: `auto trial =
/// det::load_trial_from_checkpoint_path<MNistTrial>(path);`. Optimizer state is not restored. Throws the
/// exceptions of T's constructor and of load_models.
template <typename T, typename... Arguments>
LoadedTrial<T> load_trial_from_checkpoint_path(const std::string& path, Arguments&&... arguments) {
  LoadedTrial<T> loaded;
  loaded.context = make_load_context(path);
  loaded.trial = std::make_unique<T>(*loaded.context, std::forward<Arguments>(arguments)...);
  if constexpr (requires { loaded.trial->build(); }) loaded.trial->build();
  load_models(*loaded.context, path);
  return loaded;
}

/// Writes tensors to a new file in the safetensors format
/// (https://github.com/huggingface/safetensors#format), which contains no code: the `model_index`-th model of
/// a checkpoint, or the parameters and buffers of any module. Throws std::runtime_error naming the file.
void export_safetensors(const std::string& checkpoint_directory, const std::string& path,
                        int model_index = 0);
void save_safetensors(const torch::nn::Module& module, const std::string& path);
/// Copies the tensors of a safetensors file into the module's parameters and buffers of the same names. The
/// sets of names must be equal. Throws std::runtime_error naming the file and the tensor that is damaged,
/// missing, superfluous or of another shape.
void load_safetensors(const std::string& path, torch::nn::Module& module);

/// The same for a .pth file with a state dictionary, as Python's torch.save(model.state_dict(), path) writes
/// it. Loading executes no code of the file.
void load_state_dict(const std::string& path, torch::nn::Module& module);

}  // namespace det
