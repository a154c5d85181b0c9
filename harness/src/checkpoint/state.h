// The content of state_dict.pth: models and optimizers by parameter name, learning-rate schedules, callbacks,
// the loss scale, and the random number generators of every rank. Training thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/src/checkpoint/pickle.h"
#include "harness/src/checkpoint/state_optimizer.h"
#include "harness/src/trial/run_info.h"
#include "harness/src/trial/wrapped_objects.h"

namespace det {

/// The names of all parameters of the wrapped models: "model_<index>.<path>".
ParameterNames parameter_names(const WrappedObjects& wrapped);

/// The state of the default generators of the CPU and of `device`, serialized to be sent to the chief.
std::string generator_bytes(const torch::Device& device);

/// The state of a trial as one value. `generators` holds generator_bytes() of every rank, in rank order. The
/// tensors are those in use, not copies.
pickle::Value collect_state(const WrappedObjects& wrapped, const std::vector<std::string>& generators);

/// Restores the random number generators saved by rank `rank`. A rank without saved generators (the
/// checkpoint was written by fewer ranks) is seeded from (trial seed, rank, `steps_completed`).
void apply_generators(const torch::Device& device, std::int64_t trial_seed, int rank,
                      const pickle::Value& state, std::int64_t steps_completed);

/// Restores a state written by collect_state() or by Python, without the generators. Throws
/// std::runtime_error naming the entry that is missing, unexpected or of another shape. The objects may be
/// partially changed then.
void apply_state(WrappedObjects& wrapped, const pickle::Value& state);

/// Restores the wrapped models, which must be equal in number. Throws as apply_state() does.
void apply_wrapped_models(WrappedObjects& wrapped, const pickle::Value& state);
/// Restores the wrapped optimizers; without `with_options` they keep their learning rate and other options.
/// Throws as apply_state() does.
void apply_optimizers(WrappedObjects& wrapped, const pickle::Value& state, bool with_options);

/// The entries of models_state_dict, or the single model_state_dict of old Python releases.
/// The pointers are into `state`.
std::vector<const pickle::Value*> saved_models(const pickle::Value& state);

/// Parameters and buffers by name. The tensors are those in use.
pickle::Value collect_model(const torch::nn::Module& model);
/// Copies a saved model into `model`; `name` is used in messages. Accepts keys that all have the prefix
/// "module." of Python's DataParallel. Throws std::runtime_error as apply_state() does.
void apply_model(torch::nn::Module& model, const pickle::Value& state, const std::string& name);

}  // namespace det
