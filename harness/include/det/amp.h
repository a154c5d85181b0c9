// Automatic mixed precision: autocast scopes, loss scaling for half-precision gradients, and the
// channels-last memory format. Names and semantics follow torch.amp.
#pragma once

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <unordered_map>
#include <vector>

#include "det/distributed.h"

namespace torch::nn {
class Module;
}

namespace det {

/// RAII scope of automatic mixed precision, as torch.autocast: on the current thread, the operators on
/// LibTorch's autocast list run in `dtype` until the scope ends.
///
/// Scopes nest; an inner scope with `enabled` = false restores full precision. Destroy the scope on the
/// thread that created it. Run the backward pass outside the scope: it uses the precisions of the forward
/// pass. Step optimizers outside as well: weights cast to `dtype` stay cached until the outermost scope of
/// the thread ends, so a step inside the scope would not be visible to the forward pass.
class Autocast {
 public:
  /// Enters the scope. `dtype` is kBFloat16 or kHalf on CUDA, and kBFloat16 on the CPU; any other combination
  /// throws std::invalid_argument, unless `enabled` is false.
  Autocast(const torch::Device& device, torch::ScalarType dtype, bool enabled = true);
  /// Restores the previous setting; the outermost scope also clears the cache of cast weights.
  ~Autocast();
  Autocast(const Autocast&) = delete;

 private:
  torch::DeviceType device_;
  bool before_;
  torch::ScalarType dtype_before_;
};

/// Parameters of GradScaler. Names and defaults are those of torch.cuda.amp.GradScaler.
struct GradScalerOptions {
  /// Initial scale, factor after `growth_interval` finite steps, and factor after a step that was skipped.
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  /// Consecutive steps with finite gradients before the scale grows.
  int64_t growth_interval = 2000;
  /// False makes every call of the scaler a pass-through.
  bool enabled = true;
};

/// Dynamic loss scaling (Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.2), with the
/// interface of torch.cuda.amp.GradScaler, on the CPU and on CUDA.
///
/// Order of calls in one iteration: scale() the loss before the backward pass; unscale() before gradients are
/// clipped (optional); step(), which skips the optimizer's step when a gradient is not finite; update().
/// Several optimizers may share one scaler. With `enabled` = false, scale() returns the loss and step()
/// always steps. Not thread-safe.
class GradScaler {
 public:
  /// Throws std::invalid_argument unless init_scale > 0, growth_factor > 1, 0 < backoff_factor < 1 and
  /// growth_interval >= 1.
  explicit GradScaler(const GradScalerOptions& options = {});
  /// Returns `loss` times the scale, in float (a double loss stays double).
  torch::Tensor scale(const torch::Tensor& loss);
  /// Divides the gradients of the optimizer's parameters by the scale, in place, and records whether all of
  /// them are finite. On CUDA it waits for the gradients. Throws std::logic_error when called twice for one
  /// optimizer without update(), or after step(). Throws std::invalid_argument for gradients in half
  /// precision: parameters must be float, with Autocast around the forward pass.
  void unscale(torch::optim::Optimizer& optimizer);
  /// Calls unscale() if that has not been done, then `step`, unless a gradient is infinite or NaN. Returns
  /// whether `step` was called. Throws std::logic_error when called twice for one optimizer without update().
  template <typename Step>
  bool step(torch::optim::Optimizer& optimizer, Step&& step) {
    if (!ready(optimizer)) return false;
    step();
    return true;
  }
  /// The same with optimizer.step().
  bool step(torch::optim::Optimizer& optimizer) {
    return step(optimizer, [&] { optimizer.step(); });
  }
  /// Adjusts the scale. Call it once per iteration, after the steps of all optimizers. The scale is
  /// multiplied by backoff_factor when a gradient of any optimizer was not finite, and by growth_factor after
  /// growth_interval consecutive iterations with finite gradients. Throws std::logic_error when no step was
  /// made since the previous update().
  void update();
  /// Current scale, rounded to float as in PyTorch; 1 when the scaler is disabled.
  double get_scale() const { return options_.enabled ? scale_ : 1; }
  bool is_enabled() const { return options_.enabled; }
  /// State under PyTorch's names: scale, growth_factor, backoff_factor, growth_interval, _growth_tracker.
  /// Empty when the scaler is disabled.
  Json state_dict() const;
  /// Restores state_dict(), of PyTorch as well. Throws std::invalid_argument naming the entry that is missing
  /// or invalid; the state is then unchanged. Does nothing when the scaler is disabled.
  void load_state_dict(const Json& state);

 private:
  struct Seen {
    bool found_inf = false, stepped = false;
  };
  bool ready(torch::optim::Optimizer& optimizer);
  GradScalerOptions options_;
  double scale_;
  int64_t growth_tracker_ = 0;
  /// Optimizers unscaled since the last update.
  std::unordered_map<torch::optim::Optimizer*, Seen> seen_;
};

/// Converts all four-dimensional parameters and buffers to the channels-last layout (memory order N, H, W,
/// C), in place. Every holder of the tensors sees the change, including optimizers. Call it before the first
/// optimizer step: an optimizer's state keeps the layout in which it was created.
void to_channels_last(torch::nn::Module& module);

/// Returns a four-dimensional tensor in the channels-last layout, and any other tensor unchanged.
torch::Tensor channels_last(const torch::Tensor& tensor);

}  // namespace det
