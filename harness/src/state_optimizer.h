// Owns the state of optimizers as plain data: by the names of their parameters when we wrote it, by their
// numbers when Python did.
#pragma once

#include <torch/optim/optimizer.h>

#include <string>
#include <unordered_map>

#include "pickle.h"

namespace det {

/// Parameters of the wrapped models → "model_0.conv1.weight".
using ParameterNames = std::unordered_map<const c10::TensorImpl*, std::string>;

/// True when the state of this kind of optimizer can be saved.
bool is_known_optimizer(torch::optim::Optimizer& optimizer);

/// {"state": {parameter: {…}}, "param_groups": [{options…, "params": [parameter…]}]}, with PyTorch's names.
/// The tensors in it are those in use.
pickle::Value collect_optimizer(const ParameterNames& names, torch::optim::Optimizer& optimizer);

/// Puts a state back: ours, or that of a Python optimizer of the same kind whose groups hold the same
/// parameters in the same order. Throws std::runtime_error naming `owner` and what does not fit.
void apply_optimizer(const ParameterNames& names, torch::optim::Optimizer& optimizer,
                     const pickle::Value& saved, const std::string& owner);

}  // namespace det
