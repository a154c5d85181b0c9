// Automatic mixed precision: autocast scopes, gradient scaling, and memory formats.
#include "det/amp.h"

#include <torch/nn/module.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/src/optim/autocast_compat.h"
#include "harness/src/optim/optim_kernels.h"

namespace det {
namespace {

/// True when the tensor's memory can be processed as one flat array of floats on the CPU.
bool is_plain(const torch::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat &&
         tensor.is_non_overlapping_and_dense() && !tensor.is_neg();
}

/// Multiplies `gradient` by `factor`. Returns whether all elements were finite before.
bool unscale_on_cpu(const torch::Tensor& gradient, float factor) {
  if (is_plain(gradient)) {
    auto* x = static_cast<float*>(gradient.data_ptr());
    return kernels::multiply_finite(x, factor, static_cast<std::size_t>(gradient.numel()));
  }
  const bool finite = gradient.isfinite().all().item<bool>();
  gradient.mul_(factor);
  return finite;
}

/// The tensors with the values of all gradients; for a sparse gradient its values. Throws for half precision.
std::vector<torch::Tensor> gradients_of(torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> gradients;
  for (auto& group : optimizer.param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      const torch::Tensor& gradient = parameter.unsafeGetTensorImpl()->grad();
      if (!gradient.defined()) continue;
      if (gradient.scalar_type() == at::kHalf) {
        throw std::invalid_argument(
            "GradScaler: a gradient is in half precision: keep the parameters in float, and put "
            "det::Autocast around "
            "the forward pass");
      }
      gradients.push_back(gradient.is_sparse() ? gradient._values() : gradient);
    }
  }
  return gradients;
}

double positive(const Json& state, const char* name) {
  if (!state.is_object() || !state.contains(name) || !state[name].is_number() ||
      !(state[name].get<double>() > 0)) {
    throw std::invalid_argument(std::string("state of the gradient scaler: ") + name +
                                " must be a number above 0");
  }
  return state[name].get<double>();
}

/// Changes the layout in place: set_data() keeps the identity of the tensor, which optimizers and gradients
/// refer to.
void set_layout(torch::Tensor& tensor) {
  if (tensor.defined() && tensor.dim() == 4) tensor.set_data(channels_last(tensor.detach()));
}

}  // namespace

Autocast::Autocast(const torch::Device& device, torch::ScalarType dtype, bool enabled)
    : device_(device.type()) {
  if (enabled) {
    const bool known =
        dtype == at::kBFloat16 ? device.is_cpu() || device.is_cuda() : dtype == at::kHalf && device.is_cuda();
    if (!known) {
      throw std::invalid_argument("Autocast: " + device.str() + " runs in bfloat16" +
                                  (device.is_cuda() ? " or half" : "") + ", not in " + c10::toString(dtype));
    }
  }
  const compat::AutocastSetting before = compat::autocast(device_);
  before_ = before.enabled;
  dtype_before_ = before.dtype;
  compat::set_autocast(device_, {enabled, enabled ? dtype : before.dtype});
  // LibTorch's cache of cast weights is cleared when the outermost scope ends.
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  compat::set_autocast(device_, {before_, dtype_before_});
}

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options), scale_(static_cast<float>(options.init_scale)) {
  if (!(options.init_scale > 0)) throw std::invalid_argument("GradScaler: init_scale must be above 0");
  if (!(options.growth_factor > 1)) throw std::invalid_argument("GradScaler: growth_factor must be above 1");
  if (!(options.backoff_factor > 0 && options.backoff_factor < 1)) {
    throw std::invalid_argument("GradScaler: backoff_factor must be in (0, 1)");
  }
  if (options.growth_interval < 1)
    throw std::invalid_argument("GradScaler: growth_interval must be at least 1");
}

torch::Tensor GradScaler::scale(const torch::Tensor& loss) {
  if (!options_.enabled) return loss;
  // A half-precision loss is converted first: its product with the scale would be half, too, and overflow.
  return loss.scalar_type() == at::kDouble ? loss * scale_ : loss.to(at::kFloat) * scale_;
}

void GradScaler::unscale(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  if (const auto found = seen_.find(&optimizer); found != seen_.end()) {
    throw std::logic_error(found->second.stepped
                               ? "GradScaler: unscale() comes before step(), and update() after it"
                               : "GradScaler: unscale() was called already; call update() first");
  }
  const at::NoGradGuard no_gradients;
  // PyTorch computes the reciprocal in double and rounds it to float. Other orders give other gradients.
  const auto factor = static_cast<float>(1 / scale_);
  bool finite = true;
  // Flags on the device, read together at the end because each read synchronizes.
  std::vector<torch::Tensor> on_device;
  for (const torch::Tensor& gradient : gradients_of(optimizer)) {
    if (gradient.is_cpu()) {
      finite = unscale_on_cpu(gradient, factor) && finite;
    } else {
      on_device.push_back(gradient.isfinite().all());
      gradient.mul_(factor);
    }
  }
  if (!on_device.empty()) finite = at::stack(on_device).all().item<bool>() && finite;
  seen_[&optimizer].found_inf = !finite;
}

bool GradScaler::ready(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) return true;
  const auto found = seen_.find(&optimizer);
  if (found == seen_.end()) {
    unscale(optimizer);
  } else if (found->second.stepped) {
    throw std::logic_error("GradScaler: step() was called already; call update() first");
  }
  Seen& seen = seen_.at(&optimizer);
  // The optimizer counts as stepped even if the step is skipped, so that update() is required before the next
  // one.
  seen.stepped = true;
  return !seen.found_inf;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  if (seen_.empty()) {
    throw std::logic_error("GradScaler: update() comes after step(), and there was none since the last");
  }
  bool found_inf = false;
  for (const auto& [optimizer, seen] : seen_) found_inf = found_inf || seen.found_inf;
  seen_.clear();
  if (found_inf) {
    scale_ = static_cast<float>(scale_ * options_.backoff_factor);
    growth_tracker_ = 0;
  } else if (++growth_tracker_ == options_.growth_interval) {
    // The scale stops growing before it overflows.
    const auto grown = static_cast<float>(scale_ * options_.growth_factor);
    if (std::isfinite(grown)) scale_ = grown;
    growth_tracker_ = 0;
  }
}

Json GradScaler::state_dict() const {
  if (!options_.enabled) return Json::object();
  return {{"scale", scale_},
          {"growth_factor", options_.growth_factor},
          {"backoff_factor", options_.backoff_factor},
          {"growth_interval", options_.growth_interval},
          {"_growth_tracker", growth_tracker_}};
}

void GradScaler::load_state_dict(const Json& state) {
  if (!options_.enabled) return;
  // All entries are validated before any is assigned, so an invalid state changes nothing.
  GradScalerOptions loaded = options_;
  const double scale = positive(state, "scale");
  loaded.growth_factor = positive(state, "growth_factor");
  loaded.backoff_factor = positive(state, "backoff_factor");
  loaded.growth_interval = static_cast<int64_t>(positive(state, "growth_interval"));
  if (!state.contains("_growth_tracker") || !state["_growth_tracker"].is_number_integer()) {
    throw std::invalid_argument("state of the gradient scaler: _growth_tracker must be an integer");
  }
  growth_tracker_ = state["_growth_tracker"].get<int64_t>();
  scale_ = static_cast<float>(scale);
  options_ = loaded;
}

void to_channels_last(torch::nn::Module& module) {
  const at::NoGradGuard no_gradients;
  for (torch::Tensor& parameter : module.parameters()) set_layout(parameter);
  for (torch::Tensor& buffer : module.buffers()) set_layout(buffer);
}

torch::Tensor channels_last(const torch::Tensor& tensor) {
  if (!tensor.defined() || tensor.dim() != 4) return tensor;
  const torch::Tensor laid_out = tensor.contiguous(at::MemoryFormat::ChannelsLast);
  // With one channel, both layouts have the same memory order. The strides must still be those of
  // channels-last, because operators choose their algorithm by them.
  return laid_out.as_strided(laid_out.sizes(), c10::get_channels_last_strides_2d(laid_out.sizes()));
}

}  // namespace det
