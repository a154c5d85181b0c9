// Optimizer state as plain data, keyed by parameter name; Python's files, keyed by number, are read too.
#pragma once

#include <torch/optim/optimizer.h>

#include <string>
#include <unordered_map>

#include "harness/src/checkpoint/pickle.h"
#include "harness/src/optim/zero_partition.h"

namespace det {

/// Maps parameters of the wrapped models to names such as "model_0.conv1.weight".
using ParameterNames = std::unordered_map<const c10::TensorImpl*, std::string>;

/// Throws std::invalid_argument naming the reason when the state of the optimizer could not be saved.
void check_can_be_saved(const ParameterNames& names, torch::optim::Optimizer& optimizer);

/// Returns {"state": {parameter: {…}}, "param_groups": [{options…, "params": [parameter…]}]} with PyTorch's
/// field names. The tensors are those in use. A class that is not LibTorch's or this library's own is stored
/// as optimizer_archive.h describes.
pickle::Value collect_optimizer(const ParameterNames& names, torch::optim::Optimizer& optimizer);

/// Restores a state of this library, or of a Python optimizer of the same kind with the same
/// parameters in the same order. Replaces the optimizer's state and, `with_options`, its options (a class
/// that is stored as an archive: always). A state that was divided over ranks is accepted
/// (add_optimizer_parts), and with a `partition` only this rank's part is kept. Throws std::runtime_error
/// naming `owner` and the mismatch.
void apply_optimizer(const ParameterNames& names, torch::optim::Optimizer& optimizer,
                     const pickle::Value& saved, const std::string& owner,
                     const ZeroPartition* partition = nullptr, bool with_options = true);

/// This rank's part of the state of an optimizer that is divided over the ranks: {parameter: {"begin": …,
/// "strides": […], "state": {…}}}, with elements in the order of a parameter's memory.
pickle::Value collect_optimizer_part(const ParameterNames& names, torch::optim::Optimizer& optimizer,
                                     const ZeroPartition& partition);
/// Adds the parts of all ranks to a value of collect_optimizer(), which has no state of its own then: each
/// parameter becomes {"parts": [part…]}. Throws std::runtime_error for other values.
void add_optimizer_parts(pickle::Value& optimizer, const std::vector<const pickle::Value*>& parts);

}  // namespace det
