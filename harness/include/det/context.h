// Owns TrialContext: what a trial is told (hyperparameters, configuration, identity) and through which it hands its
// model and optimizers to the platform.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "det/data.h"

namespace det {

/// Objects keep the order in which their keys were written.
using Json = nlohmann::ordered_json;

/// Thrown by a trial whose hyperparameters cannot work: the trial ends without counting as a failure, and a search
/// may try another point.
class InvalidHP : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Which process of how many this is.
struct Distributed {
  int rank = 0;
  int size = 1;
};

struct ContextState;

/// One per process, made by det::run; used on one thread. Everything wrapped is saved in checkpoints and restored from
/// them, in the order of wrapping.
class TrialContext {
 public:
  explicit TrialContext(std::unique_ptr<ContextState> state);
  ~TrialContext();
  TrialContext(const TrialContext&) = delete;

  /// The hyperparameter `name` ("optimizer.lr" reaches into a map). T is bool, int, int64_t, float, double,
  /// std::string or Json. Throws std::invalid_argument when there is none of that name (naming those there are) or its
  /// value is no T.
  template <typename T>
  T get_hparam(const std::string& name) const;
  const Json& get_hparams() const;
  /// `data` of the experiment configuration; an empty object when it has none.
  const Json& get_data_config() const;
  /// An empty object when a script runs without a configuration.
  const Json& get_experiment_config() const;

  /// The hyperparameter global_batch_size.
  int64_t get_global_batch_size() const;
  /// global_batch_size over the processes of this trial.
  int64_t get_per_slot_batch_size() const;
  /// Seeds LibTorch before the trial is built, and orders shuffled data.
  int64_t get_trial_seed() const;
  /// 0 without a cluster.
  int64_t get_experiment_id() const;
  /// 0 without a cluster.
  int64_t get_trial_id() const;
  /// The batch with which training starts: batches trained by the checkpoint it starts from.
  int64_t get_initial_batch() const;
  const Distributed& distributed() const;

  /// Where models and batches live: a CUDA device when there is one, else the CPU.
  const torch::Device& device() const;
  /// For tensors of the trial's own; batches come on the device already.
  Batch to_device(Batch batch) const { return det::to_device(std::move(batch), device()); }

  /// Moves the model to the device and makes it part of every checkpoint. Takes a module holder (a TORCH_MODULE) or a
  /// shared_ptr to a module, and returns it. Before any optimizer over its parameters is made.
  template <typename Model>
  Model wrap_model(Model model) {
    if constexpr (requires { model.ptr(); }) {
      add_model(model.ptr());
    } else {
      add_model(model);
    }
    return model;
  }

  /// Takes the optimizer over: `torch::optim::SGD& optimizer = context.wrap_optimizer(torch::optim::SGD(…));`. The
  /// reference is good for the context's life. Its parameters must belong to wrapped models.
  template <typename Optimizer, typename = std::enable_if_t<std::is_base_of_v<torch::optim::Optimizer, Optimizer>>>
  Optimizer& wrap_optimizer(Optimizer optimizer) {
    auto owned = std::make_unique<Optimizer>(std::move(optimizer));
    Optimizer& reference = *owned;
    wrap_optimizer(std::unique_ptr<torch::optim::Optimizer>(std::move(owned)));
    return reference;
  }
  torch::optim::Optimizer& wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer);

  /// Adds the gradients of `loss` (a tensor of one element).
  void backward(const torch::Tensor& loss);
  /// Changes the gradients of the parameters it is given, as torch::nn::utils::clip_grad_norm_ does.
  using ClipGradients = std::function<void(std::vector<torch::Tensor>& parameters)>;
  /// Clips, steps, and clears the gradients. Throws std::logic_error when the optimizer was not wrapped.
  void step_optimizer(torch::optim::Optimizer& optimizer, const ClipGradients& clip_gradients = nullptr);

  /// Ends training after this batch: validation and checkpoint are made, and the trial counts as completed.
  void set_stop_requested(bool stop = true);
  bool get_stop_requested() const;

  /// For the trainer.
  ContextState& state() { return *state_; }

 private:
  void add_model(std::shared_ptr<torch::nn::Module> model);
  std::unique_ptr<ContextState> state_;
};

}  // namespace det
