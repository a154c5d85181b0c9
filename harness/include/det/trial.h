// Owns Trial: the class a trial author writes.
#pragma once

#include <cstdint>

#include "det/context.h"
#include "det/data.h"
#include "det/metrics.h"

namespace det {

/// A model, its data and its training step. The constructor takes `det::TrialContext&`, reads hyperparameters, wraps
/// model and optimizers. All calls come on one thread. Any exception ends the trial and is its log's last line;
/// det::InvalidHP ends it quietly.
class Trial {
 public:
  virtual ~Trial() = default;

  /// Called once, after the constructor.
  virtual DataLoader build_training_data_loader() = 0;
  virtual DataLoader build_validation_data_loader() = 0;

  /// One step of training: forward, context.backward(loss), context.step_optimizer(optimizer). Models are in training
  /// mode. `batch_idx` counts all batches of the trial from 0; `epoch_idx` is batch_idx over the batches of an epoch.
  virtual Metrics train_batch(Batch& batch, int64_t epoch_idx, int64_t batch_idx) = 0;

  /// What to measure on one batch of validation data; the same names for every batch. Models are in evaluation mode,
  /// gradients are off.
  virtual Metrics evaluate_batch(Batch& batch) = 0;
};

}  // namespace det

/// Makes `Class` (a det::Trial with a constructor from det::TrialContext&) what this shared object holds, for
/// det-harness. One a shared object; det writes it when it builds `entrypoint: model_def:Class`.
#define DET_TRIAL(Class)                                                                                     \
  extern "C" const char* det_trial_name() { return #Class; }                                                 \
  extern "C" void* det_make_trial(det::TrialContext* context) {                                              \
    return static_cast<det::Trial*>(new Class(*context));                                                    \
  }
