// DeviceStep: an optimizer step whose changing numbers are tensors on the device.
//
// A recorded step repeats its kernels with the arguments of the recording, but learning rates and bias
// corrections change. DeviceStep writes them to tensors that its kernels read. It uses the optimizer's own
// state, so either implementation can perform the next step, and checkpoints are the same. Results differ
// from LibTorch's by rounding only.
#pragma once

#include <torch/optim/optimizer.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace det {

/// The step of one optimizer. Used on the training thread.
class DeviceStep {
 public:
  /// `optimizer` must outlive this object. All parameters are on one device.
  explicit DeviceStep(torch::optim::Optimizer& optimizer);
  /// Why this optimizer cannot be stepped, or "". Supported are exactly SGD, Adam and AdamW (no derived
  /// classes, no amsgrad).
  std::string problem() const;

  /// Steps the parameters that have a gradient. Throws std::invalid_argument for a sparse one.
  void step();
  /// The kernels of step() alone, while they are recorded; counts and numbers stay. Throws Unrecordable for a
  /// parameter that step() has not stepped yet, because its state would be made again by each repetition.
  void record();
  /// False when options other than learning rates are not those of the recording.
  bool matches_recording() const { return constants() == recorded_constants_; }
  /// Counts a repetition of the recorded kernels and writes its numbers: call it before they run.
  void count_repetition() { count(recorded_); }
  /// Takes back the count of the last repetition. The tensors stay.
  void uncount_repetition();

  /// The tensors that the recorded kernels change, without the parameters.
  std::vector<torch::Tensor> state_tensors() const;

 private:
  enum class Kind { kNone, kSgd, kAdam, kAdamW };
  /// A parameter with a gradient.
  struct Job {
    torch::Tensor parameter;
    std::size_t index;  ///< row in numbers_
    torch::optim::OptimizerOptions* options;
    torch::optim::OptimizerParamState* state;  ///< null for SGD without momentum
  };

  std::vector<Job> collect();
  torch::optim::OptimizerParamState* state_of(const torch::Tensor& parameter,
                                              const torch::optim::OptimizerOptions& options);
  void count(const std::vector<Job>& jobs);
  void apply(const std::vector<Job>& jobs);
  void apply_sgd(const Job& job, const torch::Tensor& gradient);
  template <typename Options, typename State>
  void apply_adam(const Job& job, const torch::Tensor& gradient);
  std::vector<double> constants() const;

  torch::optim::Optimizer* optimizer_;
  Kind kind_;
  /// double [parameters, 3]. SGD: learning rate. Adam: learning rate over the first bias correction, root of
  /// the second one, factor of the decoupled weight decay.
  torch::Tensor numbers_;
  std::vector<Job> recorded_;
  std::vector<double> recorded_constants_;
};

}  // namespace det
