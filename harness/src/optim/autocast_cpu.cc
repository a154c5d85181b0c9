// Faster CPU implementations of two operators inside Autocast scopes, registered for the AutocastCPU dispatch
// key.
//
//   dropout   LibTorch draws the mask sequentially on one thread: a tenth of a small network's step. Here
//             each mask element depends only on a seed from the same generator and on its index, so all
//             threads draw, and the mask does not depend on their number.
//   flatten   For channels-last images LibTorch copies element by element, and returns a gradient in the
//             other memory format, which the next operator copies again. Here both copies are blocked
//             transposes.
//
// Second derivatives use LibTorch's operators.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/flatten.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "harness/src/optim/autocast_kernels.h"

namespace det {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool is_dense_cpu(const Tensor& x) {
  return x.is_cpu() && x.layout() == at::kStrided && x.is_non_overlapping_and_dense() && !x.is_neg() &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

/// Calls body(begin, end) in parallel for ranges of elements that begin at multiples of kMaskBlock.
template <typename Body>
void for_blocks(std::int64_t count, const Body& body) {
  constexpr auto kBlock = static_cast<std::int64_t>(kernels::kMaskBlock);
  at::parallel_for(0, (count + kBlock - 1) / kBlock, 16, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t block = from; block < to; ++block)
      body(block * kBlock, std::min(count, (block + 1) * kBlock));
  });
}

/// Elements [at, end) of out = x * keep * scale, for float and bfloat16.
void keep_scaled(const Tensor& x, const std::uint8_t* keep, float scale, const Tensor& out, std::int64_t at,
                 std::int64_t end) {
  const auto count = static_cast<std::size_t>(end - at);
  if (x.scalar_type() == at::kFloat) {
    kernels::keep_scaled(static_cast<const float*>(x.data_ptr()) + at, keep + at, scale,
                         static_cast<float*>(out.data_ptr()) + at, count);
  } else {
    kernels::keep_scaled(static_cast<const std::uint16_t*>(x.data_ptr()) + at, keep + at, scale,
                         static_cast<std::uint16_t*>(out.data_ptr()) + at, count);
  }
}

/// Draws from the default generator, so torch::manual_seed() determines the mask.
std::uint64_t draw_seed() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

/// Dropout with a mask of bytes. The mask is saved for the backward pass.
class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, double drop) {
    const Tensor keep = at::empty_like(x, x.options().dtype(at::kByte));
    Tensor out = at::empty_like(x);
    const auto scale = static_cast<float>(1 / (1 - drop));
    const std::uint64_t seed = draw_seed();
    auto* mask = static_cast<std::uint8_t*>(keep.data_ptr());
    for_blocks(x.numel(), [&](std::int64_t at, std::int64_t end) {
      kernels::keep_mask(seed, static_cast<std::uint64_t>(at), drop, mask + at,
                         static_cast<std::size_t>(end - at));
      keep_scaled(x, mask, scale, out, at, end);
    });
    context->save_for_backward({keep});
    context->saved_data["scale"] = 1 / (1 - drop);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Tensor keep = context->get_saved_variables()[0];
    const double scale = context->saved_data["scale"].toDouble();
    const Tensor& gradient = gradients[0];
    // While a graph of the gradient is recorded, operators that autograd can differentiate are required.
    if (at::GradMode::is_enabled() || !is_dense_cpu(gradient) || gradient.strides() != keep.strides())
      return {gradient.mul(keep).mul(scale), Tensor()};
    Tensor out = at::empty_like(gradient);
    const auto* mask = static_cast<const std::uint8_t*>(keep.data_ptr());
    for_blocks(gradient.numel(), [&](std::int64_t at, std::int64_t end) {
      keep_scaled(gradient, mask, static_cast<float>(scale), out, at, end);
    });
    return {out, Tensor()};
  }
};

/// Transposes each image from [rows, columns] to [columns, rows]. Both tensors hold the same images.
void transpose_images(const Tensor& from, const Tensor& to, std::int64_t rows, std::int64_t columns) {
  const auto transpose = [&]<typename Word>(Word) {
    at::parallel_for(0, from.numel() / (rows * columns), 1, [&](std::int64_t image, std::int64_t end) {
      for (; image < end; ++image) {
        const std::int64_t at = image * rows * columns;
        kernels::transpose(static_cast<const Word*>(from.data_ptr()) + at,
                           static_cast<Word*>(to.data_ptr()) + at, static_cast<std::size_t>(rows),
                           static_cast<std::size_t>(columns));
      }
    });
  };
  if (from.element_size() == 4) return transpose(std::uint32_t{});
  transpose(std::uint16_t{});
}

/// Flattens all dimensions but the first of channels-last images.
class Flatten : public torch::autograd::Function<Flatten> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    context->saved_data["sizes"] = x.sizes();
    Tensor out = at::empty({x.size(0), x.numel() / x.size(0)}, x.options());
    transpose_images(x, out, x.size(2) * x.size(3), x.size(1));
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const std::vector<std::int64_t> sizes = context->saved_data["sizes"].toIntVector();
    const Tensor gradient = gradients[0].reshape(sizes);
    if (at::GradMode::is_enabled() || !is_dense_cpu(gradient) || !gradient.is_contiguous()) return {gradient};
    Tensor out = at::empty_like(gradient, gradient.options(), at::MemoryFormat::ChannelsLast);
    transpose_images(gradient, out, sizes[1], sizes[2] * sizes[3]);
    return {out};
  }
};

Tensor dropout(const Tensor& x, double drop, bool train) {
  // Excludes the key while the operator runs; otherwise at::dropout would dispatch to this function again.
  const c10::impl::ExcludeDispatchKeyGuard plain(c10::DispatchKey::AutocastCPU);
  if (!train || !(drop > 0 && drop < 1) || x.numel() == 0 || !is_dense_cpu(x))
    return at::dropout(x, drop, train);
  return Dropout::apply(x, drop);
}

Tensor flatten(const Tensor& x, std::int64_t start, std::int64_t end) {
  const c10::impl::ExcludeDispatchKeyGuard plain(c10::DispatchKey::AutocastCPU);
  // Only the case that LibTorch handles slowly: all dimensions of channels-last images but the first.
  const bool images = x.dim() == 4 && (start == 1 || start == -3) && (end == -1 || end == 3) &&
                      x.numel() > 0 && x.is_contiguous(at::MemoryFormat::ChannelsLast) &&
                      !x.is_contiguous() && is_dense_cpu(x);
  return images ? Flatten::apply(x) : at::flatten(x, start, end);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, AutocastCPU, library) {
  library.impl("dropout", dropout);
  library.impl("flatten.using_ints", flatten);
}

}  // namespace det
