// Operations with their own CPU implementation in an Autocast region: correct, independent of the number of
// threads, and twice differentiable.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "det/amp.h"
#include "tensors.h"

namespace det {
namespace {

using at::Tensor;

using testing::kCpu;
constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

Tensor dropped(const Tensor& x, double drop, std::uint64_t seed, bool train = true) {
  torch::manual_seed(seed);
  const Autocast autocast(kCpu, at::kBFloat16);
  return at::dropout(x, drop, train);
}

double share_of_zeros(const Tensor& x) { return x.eq(0).to(at::kDouble).mean().item<double>(); }

/// A channels-last image batch that requires a gradient.
Tensor images(at::ScalarType type) {
  torch::manual_seed(5);
  return at::randn({3, 5, 7, 6}).to(type).contiguous(kChannelsLast).requires_grad_();
}

}  // namespace

TEST_CASE("dropout under Autocast keeps the right fraction, scaled, in every dtype and memory format") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const double drop = GENERATE(0.1, 0.25, 0.5, 0.97);
  const bool images_first = GENERATE(true, false);
  CAPTURE(type, drop, images_first);
  Tensor x = at::ones({40, 16, 25, 31}, type);
  if (images_first) x = x.contiguous(kChannelsLast);
  const Tensor y = dropped(x, drop, 1);
  CHECK(y.strides() == x.strides());
  CHECK(y.scalar_type() == type);
  const double count = static_cast<double>(x.numel()), zeros = share_of_zeros(y);
  CHECK(std::abs(zeros - drop) < 5 * std::sqrt(drop * (1 - drop) / count));
  const Tensor kept = at::ones({1}, at::kFloat).mul(static_cast<float>(1 / (1 - drop))).to(type);
  CHECK(at::equal(y.masked_select(y.ne(0)), kept.expand({y.ne(0).sum().item<std::int64_t>()})));
  // Neighbors are dropped independently: both of a pair at the rate expected by chance.
  const Tensor flat = y.contiguous().flatten().eq(0).to(at::kDouble);
  for (const std::int64_t distance : {1, 2, 512, 1024, 4096}) {
    const auto pairs = flat.numel() - distance;
    const double both = (flat.narrow(0, 0, pairs) * flat.narrow(0, distance, pairs)).mean().item<double>();
    CHECK(std::abs(both - drop * drop) < 6 * std::sqrt(drop * drop / count));
  }
}

TEST_CASE("a dropout mask depends on the seed, not on the number of threads") {
  const int threads = at::get_num_threads();
  const Tensor x = at::ones({300, 777});
  const Tensor once = dropped(x, 0.3, 7);
  CHECK(at::equal(once, dropped(x, 0.3, 7)));
  CHECK(!at::equal(once, dropped(x, 0.3, 8)));
  at::set_num_threads(threads == 1 ? 2 : 1);
  CHECK(at::equal(once, dropped(x, 0.3, 7)));
  at::set_num_threads(threads);
  torch::manual_seed(7);
  const Autocast autocast(kCpu, at::kBFloat16);
  const Tensor first = at::dropout(x, 0.3, true), second = at::dropout(x, 0.3, true);
  CHECK(at::equal(first, once));
  CHECK(!at::equal(first, second));
}

TEST_CASE("dropout is LibTorch's outside Autocast and the identity when nothing is dropped") {
  const Tensor x = at::ones({64, 64});
  torch::manual_seed(3);
  const Tensor own = at::dropout(x, 0.5, true);
  CHECK(!at::equal(own, dropped(x, 0.5, 3)));
  torch::manual_seed(3);
  CHECK(at::equal(own, at::dropout(x, 0.5, true)));
  CHECK(at::equal(dropped(x, 0.5, 3, /*train=*/false), x));
  CHECK(at::equal(dropped(x, 0, 3), x));
  CHECK(share_of_zeros(dropped(x, 1, 3)) == 1);
  CHECK(at::equal(dropped(x.to(at::kDouble), 0.5, 3), own.to(at::kDouble)));
}

TEST_CASE("first and second gradients of dropout pass where values passed") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  CAPTURE(type);
  const Tensor x = images(type);
  const Tensor y = dropped(x, 0.25, 11);
  const Tensor mask = y.detach().ne(0).to(type).div(0.75);
  const Tensor weights = at::randn_like(y);
  const auto once = torch::autograd::grad({(y * weights).sum()}, {x}, {}, /*retain_graph=*/true)[0];
  CHECK(once.strides() == x.strides());
  CHECK(at::allclose(once, mask * weights, 1e-2, 1e-3));
  const Tensor squared = torch::autograd::grad({(y * y).sum()}, {x}, {}, true, /*create_graph=*/true)[0];
  const Tensor twice = torch::autograd::grad({squared.sum()}, {x})[0];
  CHECK(at::allclose(twice, 2 * mask * mask, 1e-2, 1e-2));
}

TEST_CASE("flattening channels-last images matches LibTorch and keeps the gradients' memory format") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  CAPTURE(type);
  const Tensor x = images(type), plain = images(type);
  const Tensor through = x * 1;
  bool in_channels_last = false;
  through.register_hook(
      [&](const Tensor& gradient) { in_channels_last = gradient.is_contiguous(kChannelsLast); });
  const Tensor weights = at::randn({3, 210}).to(type);
  {
    const Autocast autocast(kCpu, at::kBFloat16);
    const Tensor flat = through.flatten(1);
    CHECK(at::equal(flat, plain.detach().flatten(1)));
    (flat * weights).sum().backward({}, /*keep_graph=*/true);
  }
  (plain.flatten(1) * weights).sum().backward();
  CHECK(in_channels_last);
  CHECK(at::equal(x.grad(), plain.grad()));
  const Autocast autocast(kCpu, at::kBFloat16);
  const Tensor cube = (through.flatten(1) * through.flatten(1)).sum();
  const Tensor slope = torch::autograd::grad({cube}, {x}, {}, true, /*create_graph=*/true)[0];
  const Tensor twice = torch::autograd::grad({slope.sum()}, {x})[0];
  CHECK(at::allclose(twice, at::full_like(x, 2), 1e-2, 1e-2));
}

}  // namespace det
