// Owns what a trial author does with a finished checkpoint.
#pragma once

#include <torch/nn/module.h>

#include <string>

namespace det {

/// Copies the weights of a checkpoint's `model_index`-th wrapped model into `model`. Checks the manifest first; reading
/// executes no code. Throws std::runtime_error naming the file or the tensor that does not fit.
void load_model(const std::string& checkpoint_directory, torch::nn::Module& model, int model_index = 0);

}  // namespace det
