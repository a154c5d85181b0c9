// TrialContext: access to hyperparameters, configuration and identity.
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "det/context.h"
#include "harness/src/client/setting.h"
#include "harness/src/trainer/context_state.h"

namespace det {
namespace {

/// Returns the value at a dotted name. Throws std::invalid_argument listing the existing names.
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

/// An integer, or a float with an integral value: searches may produce 64.0 for 64.
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

template <>
Json TrialContext::get_hparam<Json>(const std::string& name) const {
  return find_hparam(state_->run.info.hparams, name);
}
template <>
std::int64_t TrialContext::get_hparam<std::int64_t>(const std::string& name) const {
  return whole_number(name, find_hparam(state_->run.info.hparams, name));
}
template <>
int TrialContext::get_hparam<int>(const std::string& name) const {
  const std::int64_t value = get_hparam<std::int64_t>(name);
  if (value != static_cast<int>(value)) wrong_kind(name, value, "an int");
  return static_cast<int>(value);
}
template <>
double TrialContext::get_hparam<double>(const std::string& name) const {
  const Json& value = find_hparam(state_->run.info.hparams, name);
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
  const Json& value = find_hparam(state_->run.info.hparams, name);
  if (!value.is_boolean()) wrong_kind(name, value, "true or false");
  return value.get<bool>();
}
template <>
std::string TrialContext::get_hparam<std::string>(const std::string& name) const {
  const Json& value = find_hparam(state_->run.info.hparams, name);
  if (!value.is_string()) wrong_kind(name, value, "a string");
  return value.get<std::string>();
}

const Json& TrialContext::get_hparams() const { return state_->run.info.hparams; }
const Json& TrialContext::get_data_config() const {
  return *find_setting(state_->run.info.experiment_config, "data");
}
const Json& TrialContext::get_experiment_config() const { return state_->run.info.experiment_config; }

std::int64_t TrialContext::get_global_batch_size() const {
  const auto size = get_hparam<std::int64_t>("global_batch_size");
  if (size < 1) throw std::invalid_argument("hyperparameter \"global_batch_size\" must be at least 1");
  return size;
}
std::int64_t TrialContext::get_per_slot_batch_size() const {
  // With virtual shards the batch size must not depend on the number of processes.
  const std::int64_t slots =
      state_->gradients.exact ? state_->gradients.exact->shards : state_->run.distributed->size();
  return std::max<std::int64_t>(get_global_batch_size() / slots, 1);
}
std::int64_t TrialContext::get_trial_seed() const { return state_->run.info.seed; }
std::int64_t TrialContext::get_experiment_id() const { return state_->run.info.experiment_id; }
std::int64_t TrialContext::get_trial_id() const { return state_->run.info.trial_id; }
std::int64_t TrialContext::get_initial_batch() const { return state_->initial_batch; }

}  // namespace det
