// Owns the content of state_dict.pth.
#include "state.h"

#include <ATen/Context.h>
#include <torch/cuda.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <mutex>
#include <stdexcept>
#include <tuple>

#include "torch_compat.h"

namespace det {
namespace {

namespace optim = torch::optim;
using pickle::Dict;
using pickle::List;
using pickle::Value;

[[noreturn]] void misfit(const std::string& what) { throw std::runtime_error("checkpoint does not fit: " + what); }

// The fields of every optimizer LibTorch has whose state we save, once for saving and loading.
template <typename F>
void fields(optim::SGDOptions& o, F&& f) {
  f("lr", o.lr()), f("momentum", o.momentum()), f("dampening", o.dampening());
  f("weight_decay", o.weight_decay()), f("nesterov", o.nesterov());
}
template <typename F>
void fields(optim::SGDParamState& s, F&& f) {
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
void fields(optim::AdamOptions& o, F&& f) {
  adam_options(o, f);
}
template <typename F>
void fields(optim::AdamParamState& s, F&& f) {
  adam_state(s, f);
}
template <typename F>
void fields(optim::AdamWOptions& o, F&& f) {
  adam_options(o, f);
}
template <typename F>
void fields(optim::AdamWParamState& s, F&& f) {
  adam_state(s, f);
}
template <typename F>
void fields(optim::RMSpropOptions& o, F&& f) {
  f("lr", o.lr()), f("alpha", o.alpha()), f("eps", o.eps()), f("weight_decay", o.weight_decay());
  f("momentum", o.momentum()), f("centered", o.centered());
}
template <typename F>
void fields(optim::RMSpropParamState& s, F&& f) {
  f("step", s.step()), f("square_avg", s.square_avg());
  f("momentum_buffer", s.momentum_buffer()), f("grad_avg", s.grad_avg());
}
template <typename F>
void fields(optim::AdagradOptions& o, F&& f) {
  f("lr", o.lr()), f("lr_decay", o.lr_decay()), f("weight_decay", o.weight_decay());
  f("initial_accumulator_value", o.initial_accumulator_value()), f("eps", o.eps());
}
template <typename F>
void fields(optim::AdagradParamState& s, F&& f) {
  f("step", s.step()), f("sum", s.sum());
}

/// Calls `use.template operator()<Options, ParamState>()` for the optimizer's kind; false when it is unknown.
template <typename Use>
bool with_kind(optim::Optimizer& optimizer, Use&& use) {
  auto* options = &optimizer.defaults();
  const auto is = [&]<typename Options, typename State>() {
    if (dynamic_cast<Options*>(options) == nullptr) return false;
    use.template operator()<Options, State>();
    return true;
  };
  return is.template operator()<optim::SGDOptions, optim::SGDParamState>() ||
         is.template operator()<optim::AdamOptions, optim::AdamParamState>() ||
         is.template operator()<optim::AdamWOptions, optim::AdamWParamState>() ||
         is.template operator()<optim::RMSpropOptions, optim::RMSpropParamState>() ||
         is.template operator()<optim::AdagradOptions, optim::AdagradParamState>();
}

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

struct LoadField {
  const Dict& in;
  const std::string& owner;
  const torch::Tensor* like = nullptr;  ///< the parameter: device and shape of its state's tensors

  template <typename T>
  void operator()(const char* name, T& value) const {
    value = get<T>(need(name), name);
  }
  void operator()(const char* name, torch::Tensor& value) const {
    const Value* saved = in.find(name);
    if (saved == nullptr) return;  // not yet made when it was saved
    const auto& tensor = get<torch::Tensor>(*saved, name);
    if (tensor.sizes() != like->sizes()) {
      misfit(owner + "." + name + " is " + compat::shape_text(tensor) + ", the parameter " + compat::shape_text(*like));
    }
    value = tensor.to(like->device()).clone();
  }
  void operator()(const char* name, std::tuple<double, double>& value) const {
    const auto& pair = get<List>(need(name), name);
    if (pair.size() != 2) misfit(owner + "." + name);
    value = {get<double>(pair[0], name), get<double>(pair[1], name)};
  }

 private:
  const Value& need(const char* name) const {
    const Value* value = in.find(name);
    if (value == nullptr) misfit(owner + "." + name + " is missing");
    return *value;
  }
  template <typename T>
  const T& get(const Value& value, const char* name) const {
    const T* data = value.as<T>();
    if (data == nullptr) misfit(owner + "." + name + " is of another kind");
    return *data;
  }
};

Value collect_optimizer(const ParameterNames& names, optim::Optimizer& optimizer) {
  Dict states;
  List groups;
  with_kind(optimizer, [&]<typename Options, typename State>() {
    auto& kept = optimizer.state();
    for (std::size_t g = 0; g < optimizer.param_groups().size(); ++g) {
      auto& group = optimizer.param_groups()[g];
      List members;
      for (std::size_t i = 0; i < group.params().size(); ++i) {
        const torch::Tensor& parameter = group.params()[i];
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

const Value& member(const Value& value, const char* name) {
  const Dict* dict = value.as<Dict>();
  const Value* found = dict == nullptr ? nullptr : dict->find(name);
  if (found == nullptr) misfit(std::string(name) + " is missing");
  return *found;
}
template <typename T>
const T& expect(const Value& value, const std::string& name) {
  const T* data = value.as<T>();
  if (data == nullptr) misfit(name + " is of another kind");
  return *data;
}

void apply_optimizer(const ParameterNames& names, optim::Optimizer& optimizer, const Value& saved,
                     const std::string& owner) {
  const Dict& states = expect<Dict>(member(saved, "state"), owner + ".state");
  const List& groups = expect<List>(member(saved, "param_groups"), owner + ".param_groups");
  if (groups.size() != optimizer.param_groups().size()) {
    misfit(owner + " has " + std::to_string(groups.size()) + " parameter groups, the trial's has " +
           std::to_string(optimizer.param_groups().size()));
  }
  with_kind(optimizer, [&]<typename Options, typename State>() {
    auto& kept = optimizer.state();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      auto& group = optimizer.param_groups()[g];
      fields(static_cast<Options&>(group.options()), LoadField{expect<Dict>(groups[g], owner), owner});
      for (std::size_t i = 0; i < group.params().size(); ++i) {
        const torch::Tensor& parameter = group.params()[i];
        const std::string& name = names.at(parameter.unsafeGetTensorImpl());
        const Value* entry = states.find(name);
        if (entry == nullptr) continue;  // it had not been stepped yet
        auto state = std::make_unique<State>();
        const std::string path = owner + "." + name;
        fields(*state, LoadField{expect<Dict>(*entry, path), path, &parameter});
        kept[compat::state_key(optimizer, parameter)] = std::move(state);
      }
    }
  });
}

Value collect_model(const torch::nn::Module& model) {
  Dict tensors;
  for (const auto& item : model.named_parameters()) tensors.add(item.key(), Value(item.value()));
  for (const auto& item : model.named_buffers()) {
    if (item.value().defined()) tensors.add(item.key(), Value(item.value()));
  }
  return tensors;
}

void copy_tensor(const Dict& saved, const std::string& owner, const std::string& name, torch::Tensor target) {
  const Value* entry = saved.find(name);
  if (entry == nullptr) misfit(owner + "." + name + " is missing");
  const auto& tensor = expect<torch::Tensor>(*entry, owner + "." + name);
  if (tensor.sizes() != target.sizes()) {
    misfit(owner + "." + name + " is " + compat::shape_text(tensor) + ", the model's is " + compat::shape_text(target));
  }
  target.copy_(tensor);
}

torch::Tensor generator_state(const torch::Device& device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}
void set_generator_state(const torch::Device& device, const torch::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

ParameterNames parameter_names(const ContextState& context) {
  ParameterNames names;
  for (std::size_t i = 0; i < context.models.size(); ++i) {
    for (const auto& item : context.models[i]->named_parameters()) {
      names.emplace(item.value().unsafeGetTensorImpl(), "model_" + std::to_string(i) + "." + item.key());
    }
  }
  return names;
}

bool is_known_optimizer(optim::Optimizer& optimizer) {
  return with_kind(optimizer, []<typename Options, typename State>() {});
}

Value collect_state(ContextState& context) {
  List models, optimizers;
  for (const auto& model : context.models) models.push_back(collect_model(*model));
  const ParameterNames names = parameter_names(context);
  for (const auto& optimizer : context.optimizers) optimizers.push_back(collect_optimizer(names, *optimizer));
  Dict random;
  random.add("cpu_rng_state", Value(generator_state(torch::kCPU)));
  if (context.device.is_cuda()) random.add("gpu_rng_state", Value(generator_state(context.device)));
  Dict out;
  out.add("models_state_dict", std::move(models));
  out.add("optimizers_state_dict", std::move(optimizers));
  out.add("lr_schedulers_state_dict", List{});
  out.add("callbacks", Dict{});
  out.add("rng_state", std::move(random));
  return out;
}

void apply_model(torch::nn::Module& model, const Value& state, const std::string& name) {
  torch::NoGradGuard no_grad;
  const Dict& saved = expect<Dict>(state, name);
  std::size_t known = 0;
  for (auto& item : model.named_parameters()) copy_tensor(saved, name, item.key(), item.value()), ++known;
  for (auto& item : model.named_buffers()) {
    if (item.value().defined()) copy_tensor(saved, name, item.key(), item.value()), ++known;
  }
  if (known == saved.items.size()) return;
  const auto parameters = model.named_parameters();
  const auto buffers = model.named_buffers();
  for (const auto& [key, value] : saved.items) {
    if (!parameters.contains(key) && !buffers.contains(key)) misfit(name + "." + key + " is not in the model");
  }
}

void apply_state(ContextState& context, const Value& state, bool with_generators) {
  const List& models = expect<List>(member(state, "models_state_dict"), "models_state_dict");
  if (models.size() != context.models.size()) {
    misfit("it holds " + std::to_string(models.size()) + " models, the trial wrapped " +
           std::to_string(context.models.size()));
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    apply_model(*context.models[i], models[i], "model_" + std::to_string(i));
  }
  const List& optimizers = expect<List>(member(state, "optimizers_state_dict"), "optimizers_state_dict");
  if (optimizers.size() != context.optimizers.size()) {
    misfit("it holds " + std::to_string(optimizers.size()) + " optimizers, the trial wrapped " +
           std::to_string(context.optimizers.size()));
  }
  const ParameterNames names = parameter_names(context);
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    apply_optimizer(names, *context.optimizers[i], optimizers[i], "optimizer_" + std::to_string(i));
  }
  if (!with_generators) return;
  const Value& random = member(state, "rng_state");
  set_generator_state(torch::kCPU, expect<torch::Tensor>(member(random, "cpu_rng_state"), "cpu_rng_state"));
  if (context.device.is_cuda() && expect<Dict>(random, "rng_state").find("gpu_rng_state") != nullptr) {
    set_generator_state(context.device, expect<torch::Tensor>(member(random, "gpu_rng_state"), "gpu_rng_state"));
  }
}

}  // namespace det
