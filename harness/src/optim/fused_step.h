// FusedStep: steps an optimizer in a single pass over memory.
//
// LibTorch's step dispatches a dozen operators per parameter, each a pass over its memory. FusedStep reads
// and writes each parameter, gradient and state once. It uses the optimizer's own state, so either
// implementation can perform the next step, and checkpoints are the same. Results differ from LibTorch's by
// rounding only, and do not depend on the machine or the number of threads.
#pragma once

#include <torch/optim/optimizer.h>

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace det {

/// Zeros for the state of a parameter, with its memory order and without a gradient.
torch::Tensor zeros_as(const torch::Tensor& parameter);

/// Fused implementation of one optimizer's step. Used on the training thread.
class FusedStep {
 public:
  /// `optimizer` must outlive this object.
  explicit FusedStep(torch::optim::Optimizer& optimizer);

  /// Performs optimizer.step() and returns true; or returns false without any change when the step is not
  /// supported, and the caller must call optimizer.step(). Supported are exactly SGD, Adam, AdamW and
  /// det::optim::Adadelta (no derived classes), when all parameters with a gradient are dense float tensors
  /// on the CPU with gradient and state of the same layout. Options are read at every step.
  bool step();

 private:
  enum class Kind { kNone, kSgd, kAdam, kAdamW, kAdadelta };
  using States = std::decay_t<decltype(std::declval<torch::optim::Optimizer&>().state())>;
  /// A parameter with the key of its state: making one takes microseconds.
  struct Slot {
    const c10::TensorImpl* parameter;
    States::key_type key;
  };
  /// A parameter with a gradient in this step.
  struct Job {
    torch::Tensor* parameter;
    const torch::Tensor* gradient;
    const Slot* slot;
    torch::optim::OptimizerOptions* options;
    torch::optim::OptimizerParamState* state;  ///< null before the first step
  };

  bool collect();
  bool usable(const Job& job) const;
  void list_slots();
  template <typename State>
  State& state_of(const Job& job);
  void step_sgd(const Job& job);
  template <typename Options, typename State>
  void step_adam(const Job& job);
  void step_adadelta(const Job& job);

  torch::optim::Optimizer* optimizer_;
  Kind kind_;
  std::vector<Slot> slots_;
  std::vector<Job> jobs_;
  /// Adam's bias corrections of the last parameter: most parameters share them.
  struct {
    std::int64_t step = 0;
    double beta1 = 0, beta2 = 0, first = 0, root_of_second = 0;
  } correction_;
};

}  // namespace det
