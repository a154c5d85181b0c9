// Trial: the base class of a trial author's model, data and training step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "det/callback.h"
#include "det/context.h"
#include "det/data.h"
#include "det/metrics.h"

namespace det {

/// A model, its data and its training step. The constructor takes `det::TrialContext&`, reads
/// hyperparameters, and wraps models and optimizers. All calls come from one thread. An exception ends the
/// trial and becomes the last line of its log; det::InvalidHP ends the trial without an error.
class Trial {
 public:
  virtual ~Trial() = default;

  /// Creates the data loaders. Each is called once, after the constructor.
  virtual DataLoader build_training_data_loader() = 0;
  virtual DataLoader build_validation_data_loader() = 0;

  /// Performs one training step: forward pass, context.backward(loss), context.step_optimizer(optimizer).
  /// Models are in training mode. `batch_idx` counts the batches of the trial from 0, `epoch_idx` is
  /// batch_idx divided by the batches per epoch. The returned metrics must have the same names for every
  /// batch.
  virtual Metrics train_batch(Batch& batch, int64_t epoch_idx, int64_t batch_idx) = 0;

  /// Returns the metrics of one batch of validation data, with the same names for every batch. Models are in
  /// evaluation mode and gradients are disabled. Override either this function or evaluate_full_dataset.
  virtual Metrics evaluate_batch(Batch& batch);
  /// Chief only. Returns the metrics of the whole validation data, or nullopt (the default) to use
  /// evaluate_batch. Iterate with `for (auto batches = context.iterate(loader); auto batch =
  /// batches.next();)`.
  virtual std::optional<Metrics> evaluate_full_dataset(const DataLoader& loader);
  /// How the values of evaluate_batch are reduced. The default is the mean over records.
  virtual EvaluationReducer evaluation_reducer() { return {}; }

  /// Creates the callbacks of training. Called once, before the data loaders are built.
  virtual Callbacks build_callbacks() { return {}; }
  /// Number of records in a batch: its weight in the mean of metrics.
  virtual int64_t get_batch_length(const Batch& batch) { return batch.size(); }

  /// For trial classes that construct themselves in steps. Called once, before all other functions.
  virtual void build() {}
};

/// Returns the metric "loss" as a tensor. Throws std::invalid_argument listing the actual metrics when there
/// is none.
torch::Tensor loss_of(const Metrics& metrics);

/// Managed style: the trial provides model, optimizer and loss, and the platform performs the backward pass,
/// the step and the clearing of gradients. `Net` is a module holder (a TORCH_MODULE or
/// torch::nn::Sequential).
template <typename Net>
class ManagedTrial : public Trial {
 public:
  explicit ManagedTrial(TrialContext& context) : context_(context) {}

  /// Creates the model and its optimizer. Each is called once.
  virtual Net build_model() = 0;
  virtual std::unique_ptr<torch::optim::Optimizer> optimizer(Net& model) = 0;
  /// Performs the forward pass and returns at least {"loss", …}, a tensor from which gradients are computed.
  virtual Metrics train_batch(Batch& batch, Net& model, int64_t epoch_idx, int64_t batch_idx) = 0;
  /// As Trial::evaluate_batch.
  virtual Metrics evaluate_batch(Batch& batch, Net& model) = 0;

  void build() final {
    model_ = context_.wrap_model(build_model());
    optimizer_ = &context_.wrap_optimizer(optimizer(model_));
  }
  Metrics train_batch(Batch& batch, int64_t epoch_idx, int64_t batch_idx) final {
    Metrics metrics = train_batch(batch, model_, epoch_idx, batch_idx);
    context_.backward(loss_of(metrics));
    context_.step_optimizer(*optimizer_);
    return metrics;
  }
  Metrics evaluate_batch(Batch& batch) final { return evaluate_batch(batch, model_); }

 protected:
  TrialContext& context_;

 private:
  Net model_{nullptr};
  torch::optim::Optimizer* optimizer_ = nullptr;
};

/// Reinitializes every layer with the reset_parameters() of its LibTorch class.
void reset_parameters(torch::nn::Module& model);

}  // namespace det

/// Defines the entry points by which det-harness creates `Class`, a det::Trial with a constructor from
/// det::TrialContext&, from this shared object. At most one per shared object. It is generated when det
/// builds `entrypoint: model_def:Class`. Only these two functions are visible outside the shared object.
#define DET_TRIAL(Class)                                                                               \
  extern "C" __attribute__((visibility("default"))) const char* det_trial_name() { return #Class; }    \
  extern "C" __attribute__((visibility("default"))) void* det_make_trial(det::TrialContext* context) { \
    return static_cast<det::Trial*>(new Class(*context));                                              \
  }
