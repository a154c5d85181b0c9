#include "harness/src/checkpoint/state.h"

#include <torch/cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "common/base/random.h"
#include "harness/src/base/torch_compat.h"
#include "harness/src/checkpoint/generators.h"

namespace det {
namespace {

using pickle::Dict;
using pickle::expect;
using pickle::List;
using pickle::member;
using pickle::misfit;
using pickle::Value;

/// A saved dictionary, without the "module." prefix of Python's DataParallel when `strip` is set.
struct Unwrapped {
  static constexpr std::string_view kPrefix = "module.";
  const Value* find(const std::string& name) const {
    return saved.find(strip ? std::string(kPrefix) + name : name);
  }
  const Dict& saved;
  bool strip;
};

/// Copies the saved tensor `name` into `target`. Throws std::runtime_error when it
/// is missing or its shape differs.
void copy_tensor(const Unwrapped& saved, const std::string& owner, const std::string& name,
                 const torch::Tensor& target) {
  const Value* entry = saved.find(name);
  if (entry == nullptr) misfit(owner + "." + name + " is missing");
  const auto& tensor = expect<torch::Tensor>(*entry, owner + "." + name);
  if (tensor.sizes() != target.sizes()) {
    misfit(owner + "." + name + " is " + compat::shape_text(tensor) + ", the model's is " +
           compat::shape_text(target));
  }
  target.copy_(tensor);
}

/// Reverses generator_bytes(): {"cpu_rng_state": …, "gpu_rng_state": …}.
Dict generator_dict(std::string_view bytes) {
  const auto tensor = [](std::string_view content) {
    torch::Tensor state = torch::empty({static_cast<std::int64_t>(content.size())}, torch::kByte);
    if (!content.empty()) std::memcpy(state.data_ptr(), content.data(), content.size());
    return state;
  };
  std::uint64_t cpu = 0;
  if (bytes.size() < sizeof cpu) misfit("a rank's generator state");
  std::memcpy(&cpu, bytes.data(), sizeof cpu);
  bytes.remove_prefix(sizeof cpu);
  if (cpu > bytes.size()) misfit("a rank's generator state");
  Dict dict;
  dict.add("cpu_rng_state", tensor(bytes.substr(0, cpu)));
  if (cpu < bytes.size()) dict.add("gpu_rng_state", tensor(bytes.substr(cpu)));
  return dict;
}

void set_generators(const torch::Device& device, const Value& saved) {
  // A checkpoint of a CPU run has no GPU state; the GPU generator then keeps its seed.
  set_generator_state(torch::kCPU, expect<torch::Tensor>(member(saved, "cpu_rng_state"), "cpu_rng_state"));
  const Value* gpu = expect<Dict>(saved, "rng_state").find("gpu_rng_state");
  if (device.is_cuda() && gpu != nullptr)
    set_generator_state(device, expect<torch::Tensor>(*gpu, "gpu_rng_state"));
}

/// Restores the learning-rate schedules, which are matched by position. A state without schedules fits a
/// trial without schedules.
void apply_schedulers(WrappedObjects& wrapped, const Dict& state) {
  const Value* entry = state.find("lr_schedulers_state_dict");
  if (entry == nullptr && wrapped.lr_schedulers.empty()) return;
  if (entry == nullptr) misfit("lr_schedulers_state_dict is missing");
  const List& saved = expect<List>(*entry, "lr_schedulers_state_dict");
  if (saved.size() != wrapped.lr_schedulers.size()) {
    misfit("it holds " + std::to_string(saved.size()) + " learning-rate schedules, the trial wrapped " +
           std::to_string(wrapped.lr_schedulers.size()));
  }
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const std::string name = "lr_scheduler_" + std::to_string(i);
    try {
      wrapped.lr_schedulers[i].scheduler->load_state_dict(pickle::from_value(saved[i], name));
    } catch (const std::exception& error) {
      misfit(name + ": " + error.what());
    }
  }
}

/// Restores the callbacks by name. Differences are warnings, not errors: callbacks may be
/// added and removed between runs.
void apply_callbacks(WrappedObjects& wrapped, const Dict& state) {
  const Value* entry = state.find("callbacks");
  static const Dict kNone;
  const Dict& saved = entry == nullptr ? kNone : expect<Dict>(*entry, "callbacks");
  for (const auto& [name, callback] : wrapped.callbacks) {
    if (const Value* own = saved.find(name)) {
      callback->load_state_dict(pickle::from_value(*own, "callbacks." + name));
    } else {
      std::fprintf(stderr, "warning: the checkpoint holds no state of callback \"%s\"\n", name.c_str());
    }
  }
  for (const auto& [name, own] : saved.items) {
    const auto known = [&name = name](const auto& item) { return item.first == name; };
    if (std::none_of(wrapped.callbacks.begin(), wrapped.callbacks.end(), known)) {
      std::fprintf(stderr,
                   "warning: the checkpoint holds the state of callback \"%s\", which the trial has not\n",
                   name.c_str());
    }
  }
}

}  // namespace

ParameterNames parameter_names(const WrappedObjects& wrapped) {
  ParameterNames names;
  for (std::size_t i = 0; i < wrapped.models.size(); ++i) {
    for (const auto& item : wrapped.models[i]->named_parameters()) {
      names.emplace(item.value().unsafeGetTensorImpl(), "model_" + std::to_string(i) + "." + item.key());
    }
  }
  return names;
}

std::string generator_bytes(const torch::Device& device) {
  const auto view = [](const torch::Tensor& state) {
    return std::string_view(static_cast<const char*>(state.data_ptr()), state.nbytes());
  };
  const torch::Tensor cpu = generator_state(torch::kCPU);
  const std::uint64_t size = cpu.nbytes();
  // Format: the size of the CPU state (uint64), the CPU state, the CUDA state.
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += view(cpu);
  if (device.is_cuda()) bytes += view(generator_state(device));
  return bytes;
}

Value collect_model(const torch::nn::Module& model) {
  Dict tensors;
  for (const auto& item : model.named_parameters()) tensors.add(item.key(), Value(item.value()));
  for (const auto& item : model.named_buffers()) {
    if (item.value().defined()) tensors.add(item.key(), Value(item.value()));
  }
  return tensors;
}

Value collect_state(const WrappedObjects& wrapped, const std::vector<std::string>& generators) {
  List models, optimizers, schedulers, ranks;
  Dict callbacks;
  for (const auto& model : wrapped.models) models.push_back(collect_model(*model));
  const ParameterNames names = parameter_names(wrapped);
  for (const auto& optimizer : wrapped.optimizers) optimizers.push_back(collect_optimizer(names, *optimizer));
  for (const auto& scheduler : wrapped.lr_schedulers) {
    schedulers.push_back(pickle::to_value(scheduler.scheduler->state_dict()));
  }
  for (const auto& [name, callback] : wrapped.callbacks) {
    callbacks.add(name, pickle::to_value(callback->state_dict()));
  }
  for (const std::string& bytes : generators) ranks.push_back(generator_dict(bytes));
  Dict out;
  out.add("models_state_dict", std::move(models));
  out.add("optimizers_state_dict", std::move(optimizers));
  out.add("lr_schedulers_state_dict", std::move(schedulers));
  out.add("callbacks", std::move(callbacks));
  // rng_state is the entry that Python's files have; it holds the chief's generators.
  out.add("rng_state", generator_dict(generators.at(0)));
  out.add("rng_states_by_rank", std::move(ranks));
  if (wrapped.scaler != nullptr) out.add("scaler_state_dict", pickle::to_value(wrapped.scaler->state_dict()));
  return out;
}

std::vector<const Value*> saved_models(const Value& state) {
  const Dict& dict = expect<Dict>(state, "the state");
  if (const Value* one = dict.find("model_state_dict")) return {one};
  std::vector<const Value*> models;
  for (const Value& model : expect<List>(member(state, "models_state_dict"), "models_state_dict")) {
    models.push_back(&model);
  }
  return models;
}

void apply_generators(const torch::Device& device, std::int64_t trial_seed, int rank, const Value& state,
                      std::int64_t steps_completed) {
  const Dict& dict = expect<Dict>(state, "the state");
  if (const Value* ranks = dict.find("rng_states_by_rank")) {
    const List& all = expect<List>(*ranks, "rng_states_by_rank");
    if (static_cast<std::size_t>(rank) < all.size()) return set_generators(device, all[rank]);
  } else if (const Value* chief = dict.find("rng_state"); chief != nullptr && rank == 0) {
    return set_generators(device, *chief);
  }
  // No saved state for this rank. A seed that depends on the progress avoids replaying the
  // random numbers of the trial's start.
  Random random{static_cast<std::uint64_t>(trial_seed), static_cast<std::uint64_t>(steps_completed)};
  torch::manual_seed(Random{random.next(), static_cast<std::uint64_t>(rank)}.next());
}

void apply_model(torch::nn::Module& model, const Value& state, const std::string& name) {
  torch::NoGradGuard no_grad;
  const Dict& dict = expect<Dict>(state, name);
  const auto parameters = model.named_parameters();
  const auto buffers = model.named_buffers();
  // The prefix is stripped only when every key has it and no key is a name of this model as it stands.
  const bool strip =
      !dict.items.empty() && std::all_of(dict.items.begin(), dict.items.end(), [&](const auto& item) {
        return item.first.starts_with(Unwrapped::kPrefix) && !parameters.contains(item.first) &&
               !buffers.contains(item.first);
      });
  const Unwrapped saved{dict, strip};
  std::size_t known = 0;
  for (const auto& item : parameters) copy_tensor(saved, name, item.key(), item.value()), ++known;
  for (const auto& item : buffers) {
    if (item.value().defined()) copy_tensor(saved, name, item.key(), item.value()), ++known;
  }
  // Counts are compared first; the loop only finds the name for the message.
  if (known == dict.items.size()) return;
  for (const auto& [key, value] : dict.items) {
    const std::string plain = strip ? key.substr(Unwrapped::kPrefix.size()) : key;
    if (!parameters.contains(plain) && !buffers.contains(plain))
      misfit(name + "." + key + " is not in the model");
  }
}

void apply_wrapped_models(WrappedObjects& wrapped, const Value& state) {
  const auto models = saved_models(state);
  if (models.size() != wrapped.models.size()) {
    misfit("it holds " + std::to_string(models.size()) + " models, the trial wrapped " +
           std::to_string(wrapped.models.size()));
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    apply_model(*wrapped.models[i], *models[i], "model_" + std::to_string(i));
  }
}

void apply_optimizers(WrappedObjects& wrapped, const Value& state, bool with_options) {
  const List& optimizers = expect<List>(member(state, "optimizers_state_dict"), "optimizers_state_dict");
  if (optimizers.size() != wrapped.optimizers.size()) {
    misfit("it holds " + std::to_string(optimizers.size()) + " optimizers, the trial wrapped " +
           std::to_string(wrapped.optimizers.size()));
  }
  const ParameterNames names = parameter_names(wrapped);
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    apply_optimizer(names, *wrapped.optimizers[i], optimizers[i], "optimizer_" + std::to_string(i),
                    wrapped.zero.empty() ? nullptr : wrapped.zero[i].get(), with_options);
  }
}

void apply_state(WrappedObjects& wrapped, const Value& state) {
  const Dict& dict = expect<Dict>(state, "the state");
  apply_wrapped_models(wrapped, state);
  apply_optimizers(wrapped, state, /*with_options=*/true);
  apply_schedulers(wrapped, dict);
  apply_callbacks(wrapped, dict);
  const Value* scaler = dict.find("scaler_state_dict");
  if (scaler != nullptr && wrapped.scaler != nullptr) {
    wrapped.scaler->load_state_dict(pickle::from_value(*scaler, "scaler_state_dict"));
  }
}

}  // namespace det
