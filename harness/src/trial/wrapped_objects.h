// The objects that a trial wraps: the contents of a checkpoint. Training thread.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "det/amp.h"
#include "det/callback.h"
#include "det/context.h"
#include "det/lr_scheduler.h"

namespace det {

class ZeroPartition;

/// A schedule with the mode in which the trainer steps it.
struct WrappedScheduler {
  std::unique_ptr<LRScheduler> scheduler;
  /// When the trainer calls step(): every `frequency`-th time of `mode`.
  LRStepMode mode = LRStepMode::kManual;
  std::int64_t frequency = 1;
};

/// In the order of wrapping, which is equal on every start of the trial. Parameters of `optimizers` belong to
/// `models`; the optimizers of `lr_schedulers` are in `optimizers`. Nothing is removed.
struct WrappedObjects {
  std::vector<std::shared_ptr<torch::nn::Module>> models;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers;
  /// Parallel to `optimizers` while they are divided over the ranks (`optimizations.zero`), else empty.
  std::vector<std::shared_ptr<ZeroPartition>> zero;
  std::vector<WrappedScheduler> lr_schedulers;
  std::unique_ptr<GradScaler> scaler;  ///< null unless losses are scaled
  Callbacks callbacks;

  /// The dense buffers of all models, of any type.
  std::vector<torch::Tensor> buffers() const {
    std::vector<torch::Tensor> all;
    for (const auto& model : models) {
      for (const torch::Tensor& buffer : model->buffers()) {
        if (buffer.defined() && buffer.layout() == torch::kStrided && buffer.numel() > 0)
          all.push_back(buffer);
      }
    }
    return all;
  }
};

}  // namespace det
