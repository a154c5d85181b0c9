// Owns the content of state_dict.pth: models and optimizers by the names of their parameters, and the state of random
// number generators.
#pragma once

#include <string>
#include <unordered_map>

#include "context_state.h"
#include "pickle.h"

namespace det {

/// Parameters of the wrapped models → "model_0.conv1.weight".
using ParameterNames = std::unordered_map<const c10::TensorImpl*, std::string>;
ParameterNames parameter_names(const ContextState& context);

/// True when the state of this kind of optimizer can be saved: SGD, Adam, AdamW, RMSprop, Adagrad.
bool is_known_optimizer(torch::optim::Optimizer& optimizer);

/// The tensors in it are those in use, not copies.
pickle::Value collect_state(ContextState& context);

/// Puts a collected state back in place; random number generators only `with_generators`. Throws std::runtime_error
/// naming the tensor that is missing, unexpected or of another shape.
void apply_state(ContextState& context, const pickle::Value& state, bool with_generators);

/// Puts a model's entry of models_state_dict in place; `name` is for messages.
void apply_model(torch::nn::Module& model, const pickle::Value& state, const std::string& name);

}  // namespace det
