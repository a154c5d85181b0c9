// The trial of `entrypoint: step.pt2`: trains a compiled step without code of the user. Training thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "det/datasets.h"
#include "det/trial.h"
#include "harness/src/compiled/step_package.h"

namespace det {

/// Trains the package at a path. Hyperparameters of the package are those of the trial; `data.training` and
/// `data.validation` of the configuration name safetensors files with the records. The state is the wrapped
/// model, so checkpoints, resuming and the exchange of checkpoints with Python work as for other trials.
/// Several processes average the gradients between the functions `gradients` and `update`.
class CompiledStepTrial final : public Trial {
 public:
  /// Reads the package and the data, and repeats the recorded step. Throws std::invalid_argument with every
  /// problem of the package, or every problem of configuration and data.
  CompiledStepTrial(TrialContext& context, const std::string& package);

  DataLoader build_training_data_loader() override;
  DataLoader build_validation_data_loader() override;
  Metrics train_batch(Batch& batch, int64_t epoch_idx, int64_t batch_idx) override;
  Metrics evaluate_batch(Batch& batch) override;

 private:
  CompiledStepTrial(TrialContext& context, const std::string& package, const StepFiles& files);

  TrialContext& context_;
  const StepManifest manifest_;
  const CompiledStep step_;
  Tensors state_;  ///< the parameters of the wrapped model, in the order of the manifest
  Tensors hyperparameters_;
  std::shared_ptr<const TensorDataset> training_, validation_;
};

}  // namespace det
