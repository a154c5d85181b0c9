// Owns automatic mixed precision: running a region in a lower precision, scaling losses so that
// half-precision gradients do not vanish, and the memory format in which low-precision convolutions are fast.
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

/// While it lives, the operators that LibTorch lists as safe run in `dtype` on this thread (torch.autocast).
/// `enabled` false turns autocast off in its region. The backward pass belongs outside: it uses the
/// precisions of the forward pass by itself. Casts of weights are kept until the outermost one on this thread
/// ends, so an optimizer's step belongs outside as well.
class Autocast {
 public:
  /// kBFloat16 or kHalf on CUDA, kBFloat16 on the CPU; throws std::invalid_argument otherwise, unless not
  /// `enabled`.
  Autocast(const torch::Device& device, torch::ScalarType dtype, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;

 private:
  torch::DeviceType device_;
  bool before_;
  torch::ScalarType dtype_before_;
};

struct GradScalerOptions {
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  bool enabled = true;
};

/// torch.cuda.amp.GradScaler, on any device: scale the loss, unscale before clipping, skip the step when a
/// gradient is not finite, and adapt the scale. Several optimizers may share one. With `enabled` false
/// everything passes through: scale() returns the loss, step() steps.
class GradScaler {
 public:
  /// Throws std::invalid_argument unless init_scale > 0, growth_factor > 1, 0 < backoff_factor < 1 and
  /// growth_interval >= 1.
  explicit GradScaler(const GradScalerOptions& options = {});
  torch::Tensor scale(const torch::Tensor& loss);
  /// Divides the gradients of the optimizer's parameters by the scale; once between updates and before
  /// step(), else throws std::logic_error. On CUDA this waits for the gradients. Throws std::invalid_argument
  /// for gradients in half precision: parameters must be float, with Autocast around the forward pass.
  void unscale(torch::optim::Optimizer& optimizer);
  /// unscale() unless that was done; then `step`, unless a gradient was inf or NaN. True when stepped. Throws
  /// std::logic_error when called twice between updates.
  template <typename Step>
  bool step(torch::optim::Optimizer& optimizer, Step&& step) {
    if (!ready(optimizer)) return false;
    step();
    return true;
  }
  bool step(torch::optim::Optimizer& optimizer) {
    return step(optimizer, [&] { optimizer.step(); });
  }
  /// Once an iteration, after all steps: the scale falls by backoff_factor when a gradient of any optimizer
  /// was not finite, and rises by growth_factor after growth_interval iterations in a row in which all were.
  /// Throws std::logic_error when there was no step since the last.
  void update();
  /// 1 when not enabled. As in PyTorch the scale is a float.
  double get_scale() const { return options_.enabled ? scale_ : 1; }
  bool is_enabled() const { return options_.enabled; }
  /// PyTorch's names: scale, growth_factor, backoff_factor, growth_interval, _growth_tracker. Empty when not
  /// enabled.
  Json state_dict() const;
  /// Throws std::invalid_argument naming what is missing, with nothing changed. Does nothing when not
  /// enabled.
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

/// Lays all parameters and buffers of four dimensions out with the channels last (N, H, W, C), in place:
/// every holder of the tensors sees it, optimizers too. Before the first step: an optimizer's state keeps the
/// layout it was made in.
void to_channels_last(torch::nn::Module& module);

/// The tensor with its channels last when it has four dimensions, else as it is.
torch::Tensor channels_last(const torch::Tensor& tensor);

}  // namespace det
