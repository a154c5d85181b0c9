// Gradient clipping: single-pass kernels for dense float tensors on the CPU, LibTorch operators for the rest.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "det/optim.h"
#include "harness/src/optim/graph_mode.h"
#include "harness/src/optim/optim_kernels.h"

namespace det {
namespace {

/// Elements per partial result. Independent of the number of threads, so the sum is too.
constexpr std::int64_t kPiece = 64 * 1024;

std::vector<torch::Tensor> gradients_of(const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const torch::Tensor& parameter : parameters) {
    if (!parameter.defined()) continue;
    const torch::Tensor& gradient = parameter.unsafeGetTensorImpl()->grad();
    if (gradient.defined()) gradients.push_back(gradient);
  }
  return gradients;
}

/// True when the tensor's memory can be processed as one flat array of floats on the CPU.
bool is_clippable(const torch::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat &&
         tensor.is_non_overlapping_and_dense() && !tensor.is_neg();
}

float* float_data(const torch::Tensor& tensor) { return static_cast<float*>(tensor.data_ptr()); }

/// Calls run(pointer, count, number) for each piece of a tensor, in parallel for four pieces or more.
template <typename Run>
void in_pieces(const torch::Tensor& tensor, const Run& run) {
  const std::int64_t count = tensor.numel(), pieces = (count + kPiece - 1) / kPiece;
  float* const x = float_data(tensor);
  const auto some = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      run(x + i * kPiece, static_cast<std::size_t>(std::min(kPiece, count - i * kPiece)),
          static_cast<std::size_t>(i));
    }
  };
  if (pieces < 4) {
    some(0, pieces);
  } else {
    at::parallel_for(0, pieces, 2, some);
  }
}

/// The 2-norm, or the maximum norm when `largest`, of all gradients as one vector. Partial results are added
/// in the order of pieces. NaN when an element is NaN.
double plain_norm(const std::vector<torch::Tensor>& gradients, bool largest) {
  double total = 0;
  std::vector<double> parts;
  for (const torch::Tensor& gradient : gradients) {
    parts.assign(static_cast<std::size_t>((gradient.numel() + kPiece - 1) / kPiece), 0);
    in_pieces(gradient, [&](const float* x, std::size_t count, std::size_t piece) {
      parts[piece] = largest ? kernels::largest_magnitude(x, count) : kernels::sum_of_squares(x, count);
    });
    for (const double part : parts) {
      // The negated comparison lets a NaN part replace the total; the next line then keeps it.
      if (!largest)
        total += part;
      else if (!(part <= total))
        total = std::isnan(total) ? total : part;
    }
  }
  return largest ? total : std::sqrt(total);
}

/// The norm by LibTorch operators, on the device of the first gradient.
torch::Tensor norm_on_device(const std::vector<torch::Tensor>& gradients, double norm_type) {
  const torch::Device device = gradients.front().device();
  const bool largest = std::isinf(norm_type);
  std::vector<torch::Tensor> norms;
  norms.reserve(gradients.size());
  for (const torch::Tensor& gradient : gradients) {
    norms.push_back((largest ? gradient.abs().max() : at::norm(gradient, norm_type)).to(device));
  }
  const torch::Tensor all = at::stack(norms);
  return largest ? all.max() : at::norm(all, norm_type);
}

/// Clips without a decision on the CPU. Returns NaN while a step is recorded: the norm is not known yet.
double clip_on_device(const std::vector<torch::Tensor>& gradients, double max_norm, double norm_type) {
  const torch::Tensor norm = norm_on_device(gradients, norm_type);
  const torch::Tensor factor = (norm + 1e-6).reciprocal_().mul_(max_norm).clamp_max_(1);
  for (const torch::Tensor& gradient : gradients) gradient.mul_(factor);
  return GraphMode::is_recording() ? std::numeric_limits<double>::quiet_NaN() : norm.item<double>();
}

}  // namespace

double clip_grad_norm(const std::vector<torch::Tensor>& parameters, double max_norm, double norm_type) {
  const at::NoGradGuard no_gradients;
  const std::vector<torch::Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return 0;
  if (GraphMode::on_device()) return clip_on_device(gradients, max_norm, norm_type);
  const bool plain = std::all_of(gradients.begin(), gradients.end(), is_clippable);
  const bool fast = plain && (norm_type == 2 || norm_type == std::numeric_limits<double>::infinity());
  const double norm =
      fast ? plain_norm(gradients, norm_type != 2) : norm_on_device(gradients, norm_type).item<double>();
  const double factor = max_norm / (norm + 1e-6);
  // A NaN factor fails this comparison, so the gradients become NaN, as in PyTorch.
  if (factor >= 1) return norm;
  for (const torch::Tensor& gradient : gradients) {
    if (plain) {
      in_pieces(gradient, [&](float* x, std::size_t count, std::size_t) {
        kernels::multiply(x, static_cast<float>(factor), count);
      });
    } else {
      gradient.mul_(factor);
    }
  }
  return norm;
}

void clip_grad_value(const std::vector<torch::Tensor>& parameters, double clip_value) {
  const at::NoGradGuard no_gradients;
  for (const torch::Tensor& gradient : gradients_of(parameters)) gradient.clamp_(-clip_value, clip_value);
}

}  // namespace det
