#include "harness/src/checkpoint/state_optimizer.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <tuple>

#include "det/optim.h"
#include "harness/src/base/torch_compat.h"

namespace det {
namespace {

using pickle::Dict;
using pickle::expect;
using pickle::List;
using pickle::misfit;
using pickle::Value;

// fields() calls f(name, field) for each field of an options or state struct, under PyTorch's names. One list
// serves saving and loading.
template <typename F>
void fields(torch::optim::SGDOptions& o, F&& f) {
  f("lr", o.lr()), f("momentum", o.momentum()), f("dampening", o.dampening());
  f("weight_decay", o.weight_decay()), f("nesterov", o.nesterov());
}
template <typename F>
void fields(torch::optim::SGDParamState& s, F&& f) {
  f("momentum_buffer", s.momentum_buffer());
}
template <typename Adam, typename F>
void adam_options(Adam& o, F&& f) {
  f("lr", o.lr()), f("betas", o.betas()), f("eps", o.eps());
  f("weight_decay", o.weight_decay()), f("amsgrad", o.amsgrad());
}
template <typename Adam, typename F>
void adam_state(Adam& s, F&& f) {
  f("step", s.step()), f("exp_avg", s.exp_avg()), f("exp_avg_sq", s.exp_avg_sq());
  f("max_exp_avg_sq", s.max_exp_avg_sq());
}
template <typename F>
void fields(torch::optim::AdamOptions& o, F&& f) {
  adam_options(o, f);
}
template <typename F>
void fields(torch::optim::AdamParamState& s, F&& f) {
  adam_state(s, f);
}
template <typename F>
void fields(torch::optim::AdamWOptions& o, F&& f) {
  adam_options(o, f);
}
template <typename F>
void fields(torch::optim::AdamWParamState& s, F&& f) {
  adam_state(s, f);
}
template <typename F>
void fields(torch::optim::RMSpropOptions& o, F&& f) {
  f("lr", o.lr()), f("alpha", o.alpha()), f("eps", o.eps()), f("weight_decay", o.weight_decay());
  f("momentum", o.momentum()), f("centered", o.centered());
}
template <typename F>
void fields(torch::optim::RMSpropParamState& s, F&& f) {
  f("step", s.step()), f("square_avg", s.square_avg());
  f("momentum_buffer", s.momentum_buffer()), f("grad_avg", s.grad_avg());
}
template <typename F>
void fields(torch::optim::AdagradOptions& o, F&& f) {
  f("lr", o.lr()), f("lr_decay", o.lr_decay()), f("weight_decay", o.weight_decay());
  f("initial_accumulator_value", o.initial_accumulator_value()), f("eps", o.eps());
}
template <typename F>
void fields(torch::optim::AdagradParamState& s, F&& f) {
  f("step", s.step()), f("sum", s.sum());
}

template <typename F>
void fields(det::optim::AdadeltaOptions& o, F&& f) {
  f("lr", o.lr()), f("rho", o.rho()), f("eps", o.eps()), f("weight_decay", o.weight_decay());
}
template <typename F>
void fields(det::optim::AdadeltaParamState& s, F&& f) {
  f("step", s.step()), f("square_avg", s.square_avg()), f("acc_delta", s.acc_delta());
}

/// Calls `use.template operator()<Options, ParamState>()` for the optimizer's kind; false when it is unknown.
template <typename Use>
bool with_kind(torch::optim::Optimizer& optimizer, Use&& use) {
  auto* options = &optimizer.defaults();
  const auto is = [&]<typename Options, typename State>() {
    if (dynamic_cast<Options*>(options) == nullptr) return false;
    use.template operator()<Options, State>();
    return true;
  };
  return is.template operator()<torch::optim::SGDOptions, torch::optim::SGDParamState>() ||
         is.template operator()<torch::optim::AdamOptions, torch::optim::AdamParamState>() ||
         is.template operator()<torch::optim::AdamWOptions, torch::optim::AdamWParamState>() ||
         is.template operator()<torch::optim::RMSpropOptions, torch::optim::RMSpropParamState>() ||
         is.template operator()<torch::optim::AdagradOptions, torch::optim::AdagradParamState>() ||
         is.template operator()<det::optim::AdadeltaOptions, det::optim::AdadeltaParamState>();
}

/// Adds each field to a dictionary; undefined tensors are omitted.
struct SaveField {
  Dict& out;
  template <typename T>
  void operator()(const char* name, const T& value) const {
    out.add(name, Value(value));
  }
  void operator()(const char* name, const torch::Tensor& value) const {
    if (value.defined()) out.add(name, Value(value));
  }
  void operator()(const char* name, const std::tuple<double, double>& value) const {
    out.add(name, Value(List{Value(std::get<0>(value)), Value(std::get<1>(value))}));
  }
};

/// Reads the fields that SaveField or Python wrote. Python's variants are accepted: integers for floats,
/// one-element tensors for numbers, None for tensors that do not exist yet.
struct LoadField {
  const Dict& in;
  const std::string& owner;
  const torch::Tensor* like = nullptr;  ///< the parameter: gives device and shape of its state
  bool* any = nullptr;                  ///< set when a tensor or counter was read

  void operator()(const char* name, double& value) const { value = number(need(name), name); }
  void operator()(const char* name, std::int64_t& value) const {
    value = static_cast<std::int64_t>(number(need(name), name));
    if (any != nullptr) *any = true;
  }
  void operator()(const char* name, bool& value) const { value = expect<bool>(need(name), path(name)); }
  void operator()(const char* name, torch::Tensor& value) const {
    const Value* saved = in.find(name);
    // Absent or None: the optimizer had not created the tensor when the state was saved.
    if (saved == nullptr || saved->as<std::monostate>() != nullptr) return;
    const auto& tensor = expect<torch::Tensor>(*saved, path(name));
    if (tensor.sizes() != like->sizes()) {
      misfit(path(name) + " is " + compat::shape_text(tensor) + ", the parameter " +
             compat::shape_text(*like));
    }
    value = torch::empty_like(tensor, tensor.options().device(like->device())).copy_(tensor);
    *any = true;
  }
  void operator()(const char* name, std::tuple<double, double>& value) const {
    const auto& pair = expect<List>(need(name), path(name));
    if (pair.size() != 2) misfit(path(name) + " has " + std::to_string(pair.size()) + " numbers, not 2");
    value = {number(pair[0], name), number(pair[1], name)};
  }

 private:
  std::string path(const char* name) const { return owner + "." + name; }
  const Value& need(const char* name) const {
    const Value* value = in.find(name);
    if (value == nullptr) misfit(path(name) + " is missing");
    return *value;
  }
  double number(const Value& value, const char* name) const {
    if (const auto* v = value.as<double>()) return *v;
    if (const auto* v = value.as<std::int64_t>()) return static_cast<double>(*v);
    if (const auto* v = value.as<torch::Tensor>(); v != nullptr && v->numel() == 1) return v->item<double>();
    pickle::wrong_kind(value, path(name));
  }
};

/// The key of the group's `index`-th parameter in the saved state: its number in Python's files, its
/// name in those of this library.
std::string saved_name(const List& members, std::size_t index, const ParameterNames& names,
                       const torch::Tensor& parameter) {
  if (const auto* number = members[index].as<std::int64_t>()) return std::to_string(*number);
  return names.at(parameter.unsafeGetTensorImpl());
}

}  // namespace

bool is_known_optimizer(torch::optim::Optimizer& optimizer) {
  return with_kind(optimizer, []<typename Options, typename State>() {});
}

Value collect_optimizer(const ParameterNames& names, torch::optim::Optimizer& optimizer) {
  Dict states;
  List groups;
  with_kind(optimizer, [&]<typename Options, typename State>() {
    auto& kept = optimizer.state();
    for (auto& group : optimizer.param_groups()) {
      List members;
      for (const torch::Tensor& parameter : group.params()) {
        const std::string& name = names.at(parameter.unsafeGetTensorImpl());
        if (const auto found = kept.find(compat::state_key(optimizer, parameter)); found != kept.end()) {
          Dict state;
          fields(static_cast<State&>(*found->second), SaveField{state});
          states.add(name, std::move(state));
        }
        members.emplace_back(name);
      }
      Dict entry;
      fields(static_cast<Options&>(group.options()), SaveField{entry});
      entry.add("params", std::move(members));
      groups.emplace_back(std::move(entry));
    }
  });
  Dict out;
  out.add("state", std::move(states));
  out.add("param_groups", std::move(groups));
  return out;
}

void apply_optimizer(const ParameterNames& names, torch::optim::Optimizer& optimizer, const Value& saved,
                     const std::string& owner) {
  const Dict& states = expect<Dict>(pickle::member(saved, "state"), owner + ".state");
  const List& groups = expect<List>(pickle::member(saved, "param_groups"), owner + ".param_groups");
  if (groups.size() != optimizer.param_groups().size()) {
    misfit(owner + " has " + std::to_string(groups.size()) + " parameter groups, the trial's has " +
           std::to_string(optimizer.param_groups().size()));
  }
  torch::NoGradGuard no_grad;
  with_kind(optimizer, [&]<typename Options, typename State>() {
    auto& kept = optimizer.state();
    // A parameter that was never stepped has no saved state and must not keep a current one.
    kept.clear();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      auto& group = optimizer.param_groups()[g];
      fields(static_cast<Options&>(group.options()), LoadField{expect<Dict>(groups[g], owner), owner});
      const List& members = expect<List>(pickle::member(groups[g], "params"), owner + ".params");
      if (members.size() != group.params().size()) {
        misfit(owner + ": parameter group " + std::to_string(g) + " has " + std::to_string(members.size()) +
               " parameters, the trial's has " + std::to_string(group.params().size()));
      }
      for (std::size_t i = 0; i < group.params().size(); ++i) {
        const torch::Tensor& parameter = group.params()[i];
        const std::string name = saved_name(members, i, names, parameter);
        const Value* entry = states.find(name);
        if (entry == nullptr) continue;
        auto state = std::make_unique<State>();
        const std::string path = owner + "." + name;
        bool any = false;
        fields(*state, LoadField{expect<Dict>(*entry, path), path, &parameter, &any});
        if (any) kept[compat::state_key(optimizer, parameter)] = std::move(state);
      }
    }
  });
}

}  // namespace det
