// Mixed precision on the CPU.
#include <ATen/autocast_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "det/amp.h"
#include "tensors.h"

namespace det {
namespace {

using torch::Tensor;
using torch::optim::SGD;
using torch::optim::SGDOptions;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using testing::kCpu;

Tensor weight(double value) { return at::full({5}, value).requires_grad_(); }
SGD sgd(const Tensor& parameter) { return SGD(std::vector<Tensor>{parameter}, SGDOptions(1.0)); }

/// One iteration with a scaled gradient of `value`.
bool iterate(GradScaler& scaler, SGD& optimizer, Tensor& parameter, double value) {
  parameter.mutable_grad() = at::full({5}, value * scaler.get_scale());
  const bool stepped = scaler.step(optimizer);
  scaler.update();
  return stepped;
}

}  // namespace

TEST_CASE("Autocast on the CPU multiplies matrices in bfloat16 inside its region only") {
  const Tensor a = at::randn({4, 4}), b = at::randn({4, 4});
  const auto product = [&] { return at::matmul(a, b).scalar_type(); };
  CHECK(product() == at::kFloat);
  {
    const Autocast outer(kCpu, at::kBFloat16);
    CHECK(product() == at::kBFloat16);
    {
      const Autocast off(kCpu, at::kFloat, false);
      CHECK(product() == at::kFloat);
      {
        const Autocast again(kCpu, at::kBFloat16);
        CHECK(product() == at::kBFloat16);
      }
      CHECK(product() == at::kFloat);
    }
    CHECK(product() == at::kBFloat16);
  }
  CHECK(product() == at::kFloat);
  CHECK_THROWS_WITH(Autocast(kCpu, at::kHalf), Catch::Contains("bfloat16"));
  CHECK_THROWS_AS(Autocast(kCpu, at::kFloat), std::invalid_argument);
  CHECK(product() == at::kFloat);
}

TEST_CASE("Autocast caches the cast of a weight within one region only") {
  const Tensor x = at::full({2, 2}, 1.0);
  Tensor w = at::full({2, 2}, 1.0).requires_grad_();
  const auto change = [&](double value) { w.detach().fill_(value); };
  const auto product = [&] { return at::matmul(x, w)[0][0].item<double>(); };
  {
    const Autocast outer(kCpu, at::kBFloat16);
    CHECK(product() == 2);
    {
      const Autocast inner(kCpu, at::kBFloat16);
      change(3);
      CHECK(product() == 2);
    }
    CHECK(product() == 2);
  }
  const Autocast next(kCpu, at::kBFloat16);
  CHECK(product() == 6);
}

TEST_CASE("Gradients through a bfloat16 region are float") {
  Tensor w = at::full({3, 3}, 0.5).requires_grad_();
  Tensor loss;
  {
    const Autocast region(kCpu, at::kBFloat16);
    loss = at::matmul(at::full({2, 3}, 1.0), w).sum();
  }
  loss.backward();
  CHECK(w.grad().scalar_type() == at::kFloat);
  CHECK(at::equal(w.grad(), at::full({3, 3}, 2.0)));
}

TEST_CASE("The scale follows PyTorch's rule: back off on inf, grow after an unbroken run") {
  Tensor w = weight(0);
  SGD optimizer = sgd(w);
  GradScaler scaler({.init_scale = 8, .growth_interval = 3});
  struct Iteration {
    double gradient;
    bool stepped;
    double scale, tracker;  // expected values after the step
  };
  const std::vector<Iteration> table = {
      {1, true, 8, 1},          {1, true, 8, 2},           {1, true, 16, 0}, {1, true, 16, 1},
      {kInfinity, false, 8, 0}, {-kInfinity, false, 4, 0}, {1, true, 4, 1},  {1, true, 4, 2},
      {NAN, false, 2, 0},       {1, true, 2, 1},           {1, true, 2, 2},  {1, true, 4, 0},
      {1, true, 4, 1},
  };
  double value = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    INFO("iteration " << i);
    CHECK(iterate(scaler, optimizer, w, table[i].gradient) == table[i].stepped);
    CHECK(scaler.get_scale() == table[i].scale);
    CHECK(scaler.state_dict()["_growth_tracker"] == table[i].tracker);
    if (table[i].stepped) value -= 1;
    CHECK(at::equal(w, at::full({5}, value)));
  }
}

TEST_CASE("A scaled loss gives scaled gradients, and unscale reverses that once") {
  Tensor w = weight(2);
  SGD optimizer = sgd(w);
  GradScaler scaler({.init_scale = 1024});
  scaler.scale((w * 3).sum()).backward();
  CHECK(at::equal(w.grad(), at::full({5}, 3072.0)));
  scaler.unscale(optimizer);
  CHECK(at::equal(w.grad(), at::full({5}, 3.0)));
  CHECK_THROWS_WITH(scaler.unscale(optimizer), Catch::Contains("update() first"));
  CHECK(scaler.step(optimizer));
  CHECK(at::equal(w, at::full({5}, -1.0)));
  CHECK_THROWS_WITH(scaler.step(optimizer), Catch::Contains("update() first"));
  CHECK_THROWS_AS(scaler.unscale(optimizer), std::logic_error);
  scaler.update();
  CHECK_THROWS_WITH(scaler.update(), Catch::Contains("after step()"));
  CHECK(scaler.scale(at::full({}, 1.0, at::kBFloat16)).scalar_type() == at::kFloat);
}

TEST_CASE("An inf skips only its own optimizer, and the scale falls once") {
  Tensor good = weight(1), bad = weight(1), wide = at::full({2}, 1.0, at::kDouble).requires_grad_();
  SGD first(std::vector<Tensor>{good, wide}, SGDOptions(1.0)), second = sgd(bad);
  GradScaler scaler({.init_scale = 4});
  good.mutable_grad() = at::full({5}, 4.0);
  wide.mutable_grad() = at::full({2}, 4.0, at::kDouble);
  bad.mutable_grad() = at::full({5}, 4.0);
  bad.mutable_grad()[3] = kInfinity;
  CHECK(scaler.step(first));
  CHECK_FALSE(scaler.step(second));
  scaler.update();
  CHECK(scaler.get_scale() == 2);
  CHECK(at::equal(good, at::full({5}, 0.0)));
  CHECK(at::equal(wide, at::full({2}, 0.0, at::kDouble)));
  CHECK(at::equal(bad, at::full({5}, 1.0)));
  wide.mutable_grad() = at::full({2}, kInfinity, at::kDouble);
  CHECK_FALSE(scaler.step(first));
}

TEST_CASE("A scaler's state can be restored, and a disabled scaler does nothing") {
  Tensor w = weight(0);
  SGD optimizer = sgd(w);
  GradScaler scaler({.init_scale = 64, .growth_factor = 4, .backoff_factor = 0.25, .growth_interval = 2}),
      other;
  iterate(scaler, optimizer, w, 1);
  other.load_state_dict(scaler.state_dict());
  CHECK(other.state_dict() == scaler.state_dict());
  iterate(other, optimizer, w, 1);
  CHECK(other.get_scale() == 256);
  Json broken = scaler.state_dict();
  broken["scale"] = 2;
  broken.erase("growth_interval");
  CHECK_THROWS_WITH(scaler.load_state_dict(broken), Catch::Contains("growth_interval"));
  CHECK(scaler.get_scale() == 64);

  GradScaler off({.enabled = false});
  const Tensor loss = at::full({}, 1.0);
  CHECK(off.scale(loss).is_same(loss));
  w.mutable_grad() = at::full({5}, kInfinity);
  CHECK(off.step(optimizer));
  off.update();
  CHECK(off.get_scale() == 1);
  CHECK(off.state_dict().empty());
  CHECK_NOTHROW(off.load_state_dict(Json::object()));
  CHECK_THROWS_WITH(GradScaler({.growth_factor = 1}), Catch::Contains("growth_factor"));
}

TEST_CASE("A module converted to channels-last computes the same") {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3)),
                              torch::nn::BatchNorm2d(8));
  model->eval();
  const Tensor kernel = model->parameters()[0], input = at::randn({2, 3, 9, 9});
  SGD optimizer(model->parameters(), SGDOptions(0.1));
  const Tensor before = model->forward(input);
  to_channels_last(*model);
  CHECK(model->parameters()[0].is_same(kernel));
  CHECK(optimizer.param_groups()[0].params()[0].is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK_FALSE(kernel.is_contiguous());
  CHECK(kernel.requires_grad());
  const Tensor after = model->forward(channels_last(input));
  CHECK(after.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(torch::allclose(before, after, 1e-4, 1e-5));
  CHECK(channels_last(at::randn({2, 3})).is_contiguous());
}

TEST_CASE("One-channel images are marked channels-last so that gradients match the outputs' layout") {
  torch::manual_seed(1);
  torch::nn::Conv2d first(1, 8, 3), second(8, 16, 3);
  to_channels_last(*first);
  to_channels_last(*second);
  const Tensor input = channels_last(at::randn({2, 1, 9, 9}));
  CHECK(input.strides() == at::IntArrayRef({81, 1, 9, 1}));
  CHECK(first->weight.strides() == at::IntArrayRef({9, 1, 3, 1}));
  Tensor between = torch::relu(first(input));
  at::DimVector strides;
  between.register_hook([&](const Tensor& gradient) { strides = at::DimVector(gradient.strides()); });
  second(between).sum().backward();
  CHECK(between.strides() == at::IntArrayRef(strides));
}

}  // namespace det
