// Checks before the first batch of a trial: what training needs only later fails early, at no cost. Training
// thread.
#pragma once

#include <torch/types.h>

#include <utility>
#include <vector>

#include "det/trial.h"
#include "harness/src/checkpoint/generators.h"
#include "harness/src/trainer/context_state.h"

namespace det {

/// Copies of what a validation may change: parameters, buffers and generators. The destructor puts them back,
/// so that training continues with the same bits. Costs the memory of the models until then.
class ModelGuard {
 public:
  explicit ModelGuard(const ContextState& state);
  ~ModelGuard();
  ModelGuard(const ModelGuard&) = delete;

 private:
  GeneratorGuard generators_;
  std::vector<std::pair<torch::Tensor, torch::Tensor>> tensors_;  ///< in use, copy
};

/// Verifies that a checkpoint can be saved: serializes the states of the callbacks, and writes and removes a
/// small file in the storage. Does nothing except on the chief.
/// Throws std::runtime_error, StorageFull, and exceptions of the callbacks.
void probe_checkpoint(const ContextState& state);

/// True unless the trial's class is known to inherit Trial::evaluate_full_dataset(): its validation cannot be
/// limited to a few batches.
bool evaluates_full_dataset(const Trial& trial);

}  // namespace det
