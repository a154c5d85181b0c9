// Owns Trial: the class a trial author writes.
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
/// hyperparameters, wraps model and optimizers. All calls come on one thread. Any exception ends the trial
/// and is its log's last line; det::InvalidHP ends it quietly.
class Trial {
 public:
  virtual ~Trial() = default;

  /// Called once, after the constructor.
  virtual DataLoader build_training_data_loader() = 0;
  virtual DataLoader build_validation_data_loader() = 0;

  /// One step of training: forward, context.backward(loss), context.step_optimizer(optimizer). Models are in
  /// training mode. `batch_idx` counts all batches of the trial from 0; `epoch_idx` is batch_idx over the
  /// batches of an epoch.
  virtual Metrics train_batch(Batch& batch, int64_t epoch_idx, int64_t batch_idx) = 0;

  /// What to measure on one batch of validation data; the same names for every batch. Models are in
  /// evaluation mode, gradients are off. Override this or evaluate_full_dataset.
  virtual Metrics evaluate_batch(Batch& batch);
  /// All of validation at once, on the chief; `for (auto batches = context.iterate(loader); auto batch =
  /// batches.next();)`.
  virtual std::optional<Metrics> evaluate_full_dataset(const DataLoader& loader);
  /// How the values of evaluate_batch become one.
  virtual EvaluationReducer evaluation_reducer() { return {}; }

  virtual Callbacks build_callbacks() { return {}; }
  /// Records in a batch, by which metrics are weighted.
  virtual int64_t get_batch_length(const Batch& batch) { return batch.size(); }

  /// For kinds of trials that build themselves in steps; called before everything else.
  virtual void build() {}
};

/// The metric "loss", which must be a tensor. Throws std::invalid_argument naming what there is instead.
torch::Tensor loss_of(const Metrics& metrics);

/// The managed style: the trial says what its model, optimizer and loss are, and the platform does backward,
/// zero_grad and step. `Net` is a module holder (a TORCH_MODULE or torch::nn::Sequential).
template <typename Net>
class ManagedTrial : public Trial {
 public:
  explicit ManagedTrial(TrialContext& context) : context_(context) {}

  virtual Net build_model() = 0;
  virtual std::unique_ptr<torch::optim::Optimizer> optimizer(Net& model) = 0;
  /// Returns at least {"loss", …}, from which gradients are taken.
  virtual Metrics train_batch(Batch& batch, Net& model, int64_t epoch_idx, int64_t batch_idx) = 0;
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

/// Initializes every layer again, as its constructor did.
void reset_parameters(torch::nn::Module& model);

}  // namespace det

/// Makes `Class` (a det::Trial with a constructor from det::TrialContext&) what this shared object holds, for
/// det-harness. One a shared object; det writes it when it builds `entrypoint: model_def:Class`.
#define DET_TRIAL(Class)                                        \
  extern "C" const char* det_trial_name() { return #Class; }    \
  extern "C" void* det_make_trial(det::TrialContext* context) { \
    return static_cast<det::Trial*>(new Class(*context));       \
  }
