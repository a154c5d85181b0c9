// Owns TrialContext.
#include "det/context.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "context_state.h"
#include "state.h"
#include "torch_compat.h"

namespace det {
namespace {

/// The value at the dotted name; throws naming what there is.
const Json& find_hparam(const Json& hparams, const std::string& name) {
  if (const Json* value = find_path(hparams, name); value != nullptr) return *value;
  std::vector<std::string> names;
  for (const auto& [key, value] : hparams.items()) names.push_back(key);
  throw std::invalid_argument("no hyperparameter \"" + name + "\"; there are: " +
                              (names.empty() ? "none" : join(names, ", ")) + did_you_mean(name, names));
}

[[noreturn]] void wrong_kind(const std::string& name, const Json& value, const char* wanted) {
  throw std::invalid_argument("hyperparameter \"" + name + "\" is " + dump_json(value) + ", not " + wanted);
}

/// A search may give 64.0 for 64.
std::int64_t whole_number(const std::string& name, const Json& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    const auto whole = static_cast<std::int64_t>(number);
    if (static_cast<double>(whole) == number) return whole;
  }
  wrong_kind(name, value, "a whole number");
}

}  // namespace

TrialContext::TrialContext(std::unique_ptr<ContextState> state) : state_(std::move(state)) {}
TrialContext::~TrialContext() = default;

template <>
Json TrialContext::get_hparam<Json>(const std::string& name) const {
  return find_hparam(state_->info.hparams, name);
}
template <>
std::int64_t TrialContext::get_hparam<std::int64_t>(const std::string& name) const {
  return whole_number(name, find_hparam(state_->info.hparams, name));
}
template <>
int TrialContext::get_hparam<int>(const std::string& name) const {
  const std::int64_t value = get_hparam<std::int64_t>(name);
  if (value != static_cast<int>(value)) wrong_kind(name, value, "an int");
  return static_cast<int>(value);
}
template <>
double TrialContext::get_hparam<double>(const std::string& name) const {
  const Json& value = find_hparam(state_->info.hparams, name);
  const std::optional<double> number = read_double(value);
  if (!number) wrong_kind(name, value, "a number");
  return *number;
}
template <>
float TrialContext::get_hparam<float>(const std::string& name) const {
  return static_cast<float>(get_hparam<double>(name));
}
template <>
bool TrialContext::get_hparam<bool>(const std::string& name) const {
  const Json& value = find_hparam(state_->info.hparams, name);
  if (!value.is_boolean()) wrong_kind(name, value, "true or false");
  return value.get<bool>();
}
template <>
std::string TrialContext::get_hparam<std::string>(const std::string& name) const {
  const Json& value = find_hparam(state_->info.hparams, name);
  if (!value.is_string()) wrong_kind(name, value, "a string");
  return value.get<std::string>();
}

const Json& TrialContext::get_hparams() const { return state_->info.hparams; }
const Json& TrialContext::get_data_config() const { return state_->data_config; }
const Json& TrialContext::get_experiment_config() const { return state_->info.experiment_config; }

std::int64_t TrialContext::get_global_batch_size() const {
  const auto size = get_hparam<std::int64_t>("global_batch_size");
  if (size < 1) throw std::invalid_argument("hyperparameter \"global_batch_size\" must be at least 1");
  return size;
}
std::int64_t TrialContext::get_per_slot_batch_size() const {
  return std::max<std::int64_t>(get_global_batch_size() / state_->distributed.size, 1);
}
std::int64_t TrialContext::get_trial_seed() const { return state_->info.seed; }
std::int64_t TrialContext::get_experiment_id() const { return state_->info.experiment_id; }
std::int64_t TrialContext::get_trial_id() const { return state_->info.trial_id; }
std::int64_t TrialContext::get_initial_batch() const { return state_->initial_batch; }
const Distributed& TrialContext::distributed() const { return state_->distributed; }
const torch::Device& TrialContext::device() const { return state_->device; }

void TrialContext::add_model(std::shared_ptr<torch::nn::Module> model) {
  if (model == nullptr) throw std::invalid_argument("wrap_model: the model is empty");
  model->to(state_->device);
  state_->models.push_back(std::move(model));
}

torch::optim::Optimizer& TrialContext::wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer) {
  if (optimizer == nullptr) throw std::invalid_argument("wrap_optimizer: the optimizer is empty");
  if (!is_known_optimizer(*optimizer)) {
    throw std::invalid_argument(
        "wrap_optimizer: the state of this kind of optimizer cannot be saved; use SGD, Adam, AdamW, RMSprop or "
        "Adagrad");
  }
  const ParameterNames names = parameter_names(*state_);
  for (const auto& group : optimizer->param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      if (names.count(parameter.unsafeGetTensorImpl()) == 0) {
        throw std::invalid_argument("wrap_optimizer: a parameter of shape " + compat::shape_text(parameter) +
                                    " belongs to no wrapped model; call wrap_model on it first");
      }
    }
  }
  state_->optimizers.push_back(std::move(optimizer));
  return *state_->optimizers.back();
}

void TrialContext::backward(const torch::Tensor& loss) { loss.backward(); }

void TrialContext::step_optimizer(torch::optim::Optimizer& optimizer, const ClipGradients& clip_gradients) {
  const auto& wrapped = state_->optimizers;
  if (std::none_of(wrapped.begin(), wrapped.end(), [&](const auto& known) { return known.get() == &optimizer; })) {
    throw std::logic_error("step_optimizer: this optimizer is not the one wrap_optimizer returned");
  }
  if (clip_gradients) {
    for (auto& group : optimizer.param_groups()) clip_gradients(group.params());
  }
  optimizer.step();
  for (auto& group : optimizer.param_groups()) {
    for (torch::Tensor& parameter : group.params()) parameter.mutable_grad().reset();  // cheaper than zeros
  }
}

void TrialContext::set_stop_requested(bool stop) { state_->stop_requested = stop; }
bool TrialContext::get_stop_requested() const { return state_->stop_requested; }

}  // namespace det
