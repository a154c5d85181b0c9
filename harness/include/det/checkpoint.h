// Owns what a trial author does with a finished checkpoint.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>

#include "det/context.h"

namespace det {

/// Copies the weights of a checkpoint's `model_index`-th wrapped model into `model`. Checks the manifest
/// first; reading executes no code. Also takes directories that Python's Determined wrote, of any release,
/// where the names of the tensors fit. Throws std::runtime_error naming the file or the tensor that does not
/// fit.
void load_model(const std::string& checkpoint_directory, torch::nn::Module& model, int model_index = 0);

/// A context for a trial that is used, not trained: hyperparameters and experiment configuration as given, or
/// as the checkpoint at `path` (load_data.json) holds them; nothing is reported, no signal is caught. Throws
/// std::runtime_error naming the file.
std::unique_ptr<TrialContext> make_load_context(const Json& hparams, const Json& experiment_config);
std::unique_ptr<TrialContext> make_load_context(const std::string& path);
/// Copies a checkpoint's weights into all models that the trial wrapped, in their order. As load_model.
void load_models(TrialContext& context, const std::string& path);

/// A trial outside of training. The context lives as long as it does.
template <typename T>
struct LoadedTrial {
  std::unique_ptr<TrialContext> context;
  std::unique_ptr<T> trial;
  T* operator->() const { return trial.get(); }
  T& operator*() const { return *trial; }
};

/// Builds the trial class T (from `det::TrialContext&` and `arguments`) with a checkpoint's hyperparameters
/// and puts the weights of its models in place; optimizers stay as the constructor made them: `auto trial =
/// det::load_trial_from_checkpoint_path<MNistTrial>(path);`. Throws what the constructor throws, and as
/// load_model.
template <typename T, typename... Arguments>
LoadedTrial<T> load_trial_from_checkpoint_path(const std::string& path, Arguments&&... arguments) {
  LoadedTrial<T> loaded;
  loaded.context = make_load_context(path);
  loaded.trial = std::make_unique<T>(*loaded.context, std::forward<Arguments>(arguments)...);
  if constexpr (requires { loaded.trial->build(); }) loaded.trial->build();
  load_models(*loaded.context, path);
  return loaded;
}

/// Weights in the safetensors format (https://github.com/huggingface/safetensors#format), which has no code
/// in it and many readers: the `model_index`-th model of a checkpoint, or any module's parameters and
/// buffers, to a new file. Throws std::runtime_error naming the file.
void export_safetensors(const std::string& checkpoint_directory, const std::string& path,
                        int model_index = 0);
void save_safetensors(const torch::nn::Module& module, const std::string& path);
/// Copies a file's tensors into the module's parameters and buffers of the same names; none may be missing,
/// none left over. Throws std::runtime_error naming the file and what is damaged or does not fit.
void load_safetensors(const std::string& path, torch::nn::Module& module);

}  // namespace det
