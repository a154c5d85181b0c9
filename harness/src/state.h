// Owns the content of state_dict.pth: models and optimizers by the names of their parameters, schedules,
// callbacks, the loss scale, and the state of random number generators, of every rank its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "context_state.h"
#include "pickle.h"
#include "state_optimizer.h"

namespace det {

ParameterNames parameter_names(const ContextState& context);

/// This process's default generators, as bytes to send to the chief.
std::string generator_bytes(const ContextState& context);

/// `generators`: generator_bytes of all ranks. The tensors in the value are those in use, not copies.
pickle::Value collect_state(ContextState& context, const std::vector<std::string>& generators);

/// The part of a state that is this rank's: puts the generators saved by the rank of this number in place. A
/// rank that has none (the trial had fewer) is seeded from (trial seed, rank, `steps_completed`).
void apply_generators(const torch::Device& device, std::int64_t trial_seed, int rank,
                      const pickle::Value& state, std::int64_t steps_completed);

/// Puts a collected state back in place, or one that Python wrote: see apply_model, apply_optimizer
/// and, `with_generators`, apply_generators. Throws
/// std::runtime_error naming what is missing, unexpected or of another shape.
void apply_state(ContextState& context, const pickle::Value& state, bool with_generators,
                 std::int64_t steps_completed);

/// The entries of models_state_dict, or model_state_dict alone as old releases of Python's wrote it. The
/// pointers are into `state`.
std::vector<const pickle::Value*> saved_models(const pickle::Value& state);

/// Parameters and buffers by name.
pickle::Value collect_model(const torch::nn::Module& model);
/// Puts such an entry in place; `name` is for messages. All its keys may have the prefix "module." that
/// Python's data parallel wrapper adds.
void apply_model(torch::nn::Module& model, const pickle::Value& state, const std::string& name);

}  // namespace det
