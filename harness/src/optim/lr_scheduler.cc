// Base of all learning-rate schedules: stepping, initial learning rates, and state as JSON.
#include "det/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>

#include "common/base/json.h"

namespace det {
namespace {

/// Initial learning rates of `optimizer`, shared with its other schedules. PyTorch stores them in the
/// parameter groups; LibTorch's groups have no place for them.
std::shared_ptr<std::vector<double>> shared_initial_lrs(torch::optim::Optimizer& optimizer) {
  thread_local std::unordered_map<const torch::optim::Optimizer*, std::weak_ptr<std::vector<double>>> known;
  // An expired entry may belong to a destroyed optimizer at the same address.
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = known.find(&optimizer); found != known.end()) {
    auto shared = found->second.lock();
    // A new optimizer at the same address, or new parameter groups, make the entry invalid.
    if (shared->size() == optimizer.param_groups().size()) return shared;
  }
  auto fresh = std::make_shared<std::vector<double>>();
  for (const auto& group : optimizer.param_groups()) fresh->push_back(group.options().get_lr());
  known[&optimizer] = fresh;
  return fresh;
}

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw std::invalid_argument("state of the learning-rate schedule: " + name + " " + why);
}

const Json& need(const Json& value, bool right, const std::string& name, const char* kind) {
  if (!right) refuse(name, std::string("is no ") + kind);
  return value;
}

void read(const Json& value, const std::string& name, double& out) {
  const auto number = read_double(value);
  if (!number) refuse(name, "is no number");
  out = *number;
}
void read(const Json& value, const std::string& name, std::int64_t& out) {
  // A float with an integral value is accepted.
  const bool integral = value.is_number_float() && value.get<double>() == std::floor(value.get<double>());
  out = need(value, value.is_number_integer() || integral, name, "integer").get<std::int64_t>();
}
void read(const Json& value, const std::string& name, bool& out) {
  out = need(value, value.is_boolean(), name, "true or false").get<bool>();
}
void read(const Json& value, const std::string& name, std::string& out) {
  out = need(value, value.is_string(), name, "text").get<std::string>();
}
template <typename T>
void read(const Json& value, const std::string& name, std::vector<T>& out) {
  for (const Json& item : need(value, value.is_array(), name, "list")) read(item, name, out.emplace_back());
}
void read(const Json& value, const std::string& name, std::map<std::int64_t, std::int64_t>& out) {
  for (const auto& [key, item] : need(value, value.is_object(), name, "map").items()) {
    std::size_t used = 0;
    std::int64_t step = 0;
    try {
      step = std::stoll(key, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || used != key.size()) refuse(name, "has the key " + key + ", which is no integer");
    read(item, name, out[step]);
  }
}

Json written(const std::map<std::int64_t, std::int64_t>& value) {
  Json out = Json::object();
  for (const auto& [step, count] : value) out[std::to_string(step)] = count;
  return out;
}
template <typename T>
Json written(const T& value) {
  return value;
}

}  // namespace

LRScheduler::LRScheduler(torch::optim::Optimizer& optimizer) : optimizer_(&optimizer) {
  initial_lrs_ = shared_initial_lrs(optimizer);
  base_lrs_ = *initial_lrs_;
  last_lr_ = current_lr();
}

void LRScheduler::initial_step() {
  step_count_ = 0;
  step();
}

void LRScheduler::step() {
  ++step_count_;
  ++last_epoch_;
  set_lr(get_lr());
  set_others();
}

void LRScheduler::restart() {
  ++step_count_;
  last_epoch_ = 0;
  // Recursive schedules compute their first rate from the current one.
  set_lr(base_lrs_);
  set_lr(get_lr());
  set_others();
}

std::vector<double> LRScheduler::current_lr() const {
  std::vector<double> lr;
  lr.reserve(optimizer_->param_groups().size());
  for (const auto& group : optimizer_->param_groups()) lr.push_back(group.options().get_lr());
  return lr;
}

void LRScheduler::set_lr(const std::vector<double>& lr) {
  auto& groups = optimizer_->param_groups();
  if (groups.size() != lr.size() || groups.size() != base_lrs_.size()) {
    throw std::logic_error("the optimizer has " + std::to_string(groups.size()) + " parameter groups, " +
                           std::to_string(base_lrs_.size()) + " when its learning-rate schedule was made: " +
                           "make the schedule after the last add_param_group");
  }
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(lr[i]);
  last_lr_ = lr;
}

std::vector<double> LRScheduler::current_times(double factor) const {
  std::vector<double> lr = current_lr();
  for (double& value : lr) value *= factor;
  return lr;
}

std::vector<LRScheduler::Field> LRScheduler::fields() {
  return {{"base_lrs", &base_lrs_},
          {"last_epoch", &last_epoch_},
          {"_step_count", &step_count_},
          {"_last_lr", &last_lr_, false}};
}

std::vector<LRScheduler::Field> LRScheduler::fields_and(std::initializer_list<Field> more) {
  std::vector<Field> all(more);
  for (const Field& field : LRScheduler::fields()) all.push_back(field);
  return all;
}

Json LRScheduler::state_dict() const {
  Json out = Json::object();
  // The list of fields serves both directions; here its pointers are only read.
  for (const Field& field : const_cast<LRScheduler*>(this)->fields()) {
    std::visit([&](const auto* value) { out[field.name] = written(*value); }, field.value);
  }
  return out;
}

void LRScheduler::load_state_dict(const Json& state) {
  if (!state.is_object()) throw std::invalid_argument("state of the learning-rate schedule: is no map");
  // All values are validated before any is assigned.
  std::vector<std::function<void()>> changes;
  for (const Field& field : fields()) {
    const auto found = state.find(field.name);
    if (found == state.end()) {
      if (field.required) refuse(field.name, "is missing");
      continue;
    }
    std::visit(
        [&](auto* target) {
          std::remove_pointer_t<decltype(target)> value{};
          read(*found, field.name, value);
          if constexpr (std::is_same_v<decltype(value), std::vector<double>>) {
            const std::size_t groups = optimizer_->param_groups().size();
            if (value.size() != groups) {
              refuse(field.name, "has " + std::to_string(value.size()) + " elements for " +
                                     std::to_string(groups) + " parameter groups");
            }
          }
          changes.push_back([target, value = std::move(value)] { *target = value; });
        },
        field.value);
  }
  for (const auto& change : changes) change();
}

std::vector<double> PerGroup::expand(std::size_t groups, const char* name) const {
  if (values_.size() == groups) return values_;
  if (values_.size() == 1) return std::vector<double>(groups, values_.front());
  throw std::invalid_argument(std::string(name) + " has " + std::to_string(values_.size()) + " values for " +
                              std::to_string(groups) + " parameter groups");
}

}  // namespace det
