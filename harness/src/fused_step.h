// Owns stepping an optimizer in one pass over memory.
//
// LibTorch's own step costs a dozen dispatched operators for each parameter, each a pass over its memory.
// This one reads and writes each parameter, gradient and state once; what it keeps lies where the optimizer
// itself keeps it, so either may make the next step, and checkpoints see no difference. Values differ from
// LibTorch's in rounding only; they do not depend on the machine or the number of threads.
#pragma once

#include <torch/optim/optimizer.h>

#include <cstddef>
#include <vector>

namespace det {

class FusedStep {
 public:
  /// The optimizer must outlive this object.
  explicit FusedStep(torch::optim::Optimizer& optimizer);

  /// True when it did what optimizer.step() does. False, with nothing changed, when it cannot: then the
  /// caller makes optimizer.step(). It can when the optimizer is SGD, Adam, AdamW or det::optim::Adadelta
  /// itself (no class derived from them), and all parameters that have a gradient are dense float on the CPU,
  /// with gradient and state laid out alike. Options are read anew each time.
  bool step();

  /// To be called after something else has replaced the optimizer's state (a restore): it is looked up anew.
  void invalidate() { slots_.clear(); }

 private:
  enum class Kind { kNone, kSgd, kAdam, kAdamW, kAdadelta };
  /// A parameter, and its state once there is one: the lookup by name costs microseconds.
  struct Slot {
    const c10::TensorImpl* parameter;
    torch::optim::OptimizerParamState* state = nullptr;
  };
  /// A parameter to be stepped now.
  struct Job {
    torch::Tensor* parameter;
    const torch::Tensor* gradient;
    Slot* slot;
    torch::optim::OptimizerOptions* options;
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
  /// The bias corrections of Adam last computed: most parameters share them.
  struct {
    std::int64_t step = 0;
    double beta1 = 0, beta2 = 0, first = 0, root_of_second = 0;
  } correction_;
};

/// Leaves every parameter of the optimizer without a gradient: the next backward pass then moves its own in.
void zero_grads(torch::optim::Optimizer& optimizer);

}  // namespace det
