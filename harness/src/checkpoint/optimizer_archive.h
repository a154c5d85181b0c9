// State of an optimizer as plain data; only its own save() and load() define the layout. save() writes to an
// archive in memory, which is converted; a file never contains LibTorch's archive, which may contain code.
#pragma once

#include <torch/optim/optimizer.h>

#include <string>

#include "harness/src/checkpoint/state_optimizer.h"

namespace det {

/// Returns {"archive": …, "param_groups": [{"options": …, "params": [parameter…]}]}. Addresses of parameters,
/// which LibTorch's archives use as keys, become their names. Throws std::invalid_argument when save() writes
/// nothing, or a value that a checkpoint cannot hold, and when the options cannot be serialized.
pickle::Value collect_optimizer_archive(const ParameterNames& names, torch::optim::Optimizer& optimizer);

/// Passes such a value to load(), and restores the options. Throws std::runtime_error naming `owner` and the
/// mismatch.
void apply_optimizer_archive(const ParameterNames& names, torch::optim::Optimizer& optimizer,
                             const pickle::Value& saved, const std::string& owner);

}  // namespace det
