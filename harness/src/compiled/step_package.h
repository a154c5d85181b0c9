// A compiled step in three files: functions (NAME.pt2), manifest (NAME.json) and tensors (NAME.safetensors):
// the initial state and a step that was recorded in eager mode. Training thread.
#pragma once

#include <torch/types.h>

#include <optional>
#include <string>
#include <vector>

#include "harness/src/compiled/compiled_function.h"
#include "harness/src/compiled/step_manifest.h"

namespace det {

using Tensors = std::vector<torch::Tensor>;

/// A step as it ran in eager mode in Python. Lists are in the order of the manifest.
struct RecordedStep {
  Tensors before, after;  ///< state
  Tensors batch, hyperparameters, metrics;
  Tensors evaluation_batch, evaluation_metrics;  ///< evaluated on the state `after`
};

/// The content of NAME.json and NAME.safetensors.
struct StepFiles {
  StepManifest manifest;
  Tensors initial;  ///< state of a new trial
  RecordedStep recorded;
};

/// Reads both files of the package NAME.pt2. Throws std::invalid_argument with every problem: those of the
/// manifest; else another digest of NAME.pt2; else the tensors that are missing, unknown, or of another type
/// or shape than the manifest says.
StepFiles read_step_files(const std::string& package);

/// What an optimizer step returns beside the state.
struct GradientResult {
  Tensors gradients, metrics;
};

/// The functions of a package.
class CompiledStep {
 public:
  /// Loads NAME.pt2. Throws std::invalid_argument for a function that is missing, another device, or a
  /// LibTorch that is too old.
  CompiledStep(const std::string& package, const StepManifest& manifest, const torch::Device& device);

  /// The calls. Inputs are on the device of the constructor. Throw std::invalid_argument when the number of
  /// outputs is not the manifest's.
  GradientResult gradients(const Tensors& state, const Tensors& batch) const;
  /// Returns the new state, contiguous. The inputs do not change.
  Tensors update(const Tensors& state, const Tensors& gradients, const Tensors& hyperparameters) const;
  Tensors evaluate(const Tensors& state, const Tensors& batch) const;

 private:
  std::size_t states_, gradients_count_, metrics_, evaluation_metrics_;
  CompiledFunction gradients_, update_, evaluate_;
};

/// Repeats the recorded step and compares. Throws std::invalid_argument that names every tensor with another
/// value, type or shape: the package does not compute the step that was exported.
void check_recorded_step(const std::string& package, const CompiledStep& step, const StepFiles& files,
                         const torch::Device& device);

}  // namespace det
