// Manifest of a compiled step: the signature of the functions in NAME.pt2, read from NAME.json beside it.
// Pure.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace det {

/// A tensor in the signature of a compiled function.
struct TensorSpec {
  std::string name;  ///< dotted: "model.conv1.weight"
  torch::ScalarType dtype = torch::kFloat;
  std::vector<std::int64_t> shape;
};

/// Signature of the functions of a package. The order of each list is the order of inputs and outputs:
///   gradients: state, batch → gradients, metrics
///   update: state, gradients, hyperparameters → state
///   evaluate: state, evaluation_batch → evaluation_metrics
/// Hyperparameters and metrics are float32 tensors without dimensions.
struct StepManifest {
  std::string package_sha256;              ///< digest of NAME.pt2
  torch::DeviceType device = torch::kCPU;  ///< the device that the functions were compiled for
  std::vector<TensorSpec> state, gradients, batch, evaluation_batch;
  std::vector<std::string> hyperparameters, metrics, evaluation_metrics;

  /// Records in a batch: the first size of all its tensors.
  std::int64_t batch_size() const { return batch.front().shape.front(); }
  std::int64_t evaluation_batch_size() const { return evaluation_batch.front().shape.front(); }
};

/// Parses a manifest. `file` is its name in messages. Errors: kInvalidArgument with every problem: unknown
/// and missing keys, values of a wrong kind, names that exclude each other, batches without a common first
/// size.
Result<StepManifest> parse_step_manifest(const std::string& text, const std::string& file);

/// The names of a list of specs.
std::vector<std::string> names_of(const std::vector<TensorSpec>& specs);
/// Such as "float32 [64, 10]".
std::string describe(torch::ScalarType dtype, const std::vector<std::int64_t>& shape);

}  // namespace det
