// Optimizers against PyTorch in Python (golden.py), and the fused step against LibTorch's own.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/embedding.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>
#include <torch/utils.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <sstream>

#include "det/optim.h"
#include "harness/src/optim/device_step.h"
#include "harness/src/optim/fused_step.h"
#include "optim_golden.h"
#include "tensors.h"

namespace det {
namespace {

namespace lib = torch::optim;
using testing::same_bits;
using torch::Tensor;
using Tensors = std::vector<Tensor>;
using MadeOptimizer = std::unique_ptr<lib::Optimizer>;

template <typename Kind, typename Options>
std::function<MadeOptimizer(Tensors)> with(Options options) {
  return [options](Tensors parameters) -> MadeOptimizer {
    return std::make_unique<Kind>(std::move(parameters), options);
  };
}

/// The same optimizers as in golden.py.
const std::map<std::string, std::function<MadeOptimizer(Tensors)>>& optimizers() {
  using lib::SGDOptions, lib::AdamOptions, lib::AdamWOptions, lib::RMSpropOptions, lib::AdagradOptions;
  using optim::AdadeltaOptions;
  static const std::map<std::string, std::function<MadeOptimizer(Tensors)>> all = {
      {"SGD", with<lib::SGD>(SGDOptions(0.1))},
      {"SGD momentum", with<lib::SGD>(SGDOptions(0.05).momentum(0.9).weight_decay(0.01))},
      {"SGD dampening", with<lib::SGD>(SGDOptions(0.05).momentum(0.8).dampening(0.3))},
      {"SGD nesterov", with<lib::SGD>(SGDOptions(0.05).momentum(0.9).nesterov(true).weight_decay(0.02))},
      {"Adam", with<lib::Adam>(AdamOptions(0.02))},
      {"Adam amsgrad",
       with<lib::Adam>(AdamOptions(0.02).betas({0.8, 0.95}).weight_decay(0.05).amsgrad(true))},
      {"AdamW", with<lib::AdamW>(AdamWOptions(0.02).weight_decay(0.1))},
      {"AdamW amsgrad", with<lib::AdamW>(AdamWOptions(0.02).eps(1e-4).amsgrad(true))},
      {"RMSprop", with<lib::RMSprop>(RMSpropOptions(0.01).weight_decay(0.01))},
      {"RMSprop centered", with<lib::RMSprop>(RMSpropOptions(0.01).momentum(0.9).centered(true))},
      {"Adagrad", with<lib::Adagrad>(AdagradOptions(0.1).lr_decay(0.05).weight_decay(0.01))},
      {"Adadelta", with<optim::Adadelta>(AdadeltaOptions())},
      {"Adamax", with<optim::Adamax>(optim::AdamaxOptions(0.02))},
      {"Adamax decay",
       with<optim::Adamax>(optim::AdamaxOptions(0.02).betas({0.8, 0.95}).eps(1e-6).weight_decay(0.05))},
      {"NAdam", with<optim::NAdam>(optim::NAdamOptions(0.02))},
      {"NAdam decay", with<optim::NAdam>(optim::NAdamOptions(0.02).weight_decay(0.05).momentum_decay(0.02))},
      {"RAdam", with<optim::RAdam>(optim::RAdamOptions(0.02))},
      {"RAdam decay", with<optim::RAdam>(optim::RAdamOptions(0.02).betas({0.8, 0.95}).weight_decay(0.05))},
      {"ASGD", with<optim::ASGD>(optim::ASGDOptions(0.05))},
      {"ASGD averaged",
       with<optim::ASGD>(optim::ASGDOptions(0.05).lambd(0.01).alpha(0.6).t0(3).weight_decay(0.02))},
      {"Rprop", with<optim::Rprop>(optim::RpropOptions(0.01))},
      {"Rprop bounds",
       with<optim::Rprop>(optim::RpropOptions(0.02).etas({0.4, 1.5}).step_sizes({0.005, 0.04}))},
      {"Adadelta decay", with<optim::Adadelta>(AdadeltaOptions(0.5).rho(0.8).eps(1e-5).weight_decay(0.1))},
  };
  return all;
}
bool is_fusable(const std::string& name) {
  const std::string kind = name.substr(0, name.find(' '));
  return kind == "SGD" || kind == "Adam" || kind == "AdamW" || kind == "Adadelta";
}

Tensor parameter(double shift, int count) {
  Tensor made = at::empty({count});
  for (int i = 0; i < count; ++i) made.data_ptr<float>()[i] = static_cast<float>(std::sin(shift + i));
  return made.requires_grad_();
}

void set_gradient(Tensor& p, int step) {
  Tensor g = at::empty(p.sizes());
  for (int i = 0; i < p.numel(); ++i) {
    const double w = p.data_ptr<float>()[i];
    g.data_ptr<float>()[i] = static_cast<float>((w - 0.5) * (1 + 0.1 * i) + 0.05 * std::cos(step + i));
  }
  p.mutable_grad() = g;
}

void check_values(const Tensors& parameters, const Json& expected, double epsilon = 1e-5) {
  std::size_t next = 0;
  for (const Tensor& p : parameters) {
    for (int i = 0; i < p.numel(); ++i) {
      CHECK(p.data_ptr<float>()[i] ==
            Approx(expected.at(next++).get<double>()).epsilon(epsilon).margin(epsilon / 10));
    }
  }
  CHECK(next == expected.size());
}

/// Parameters in the shapes of a real model, with gradients. Determined by the seed.
struct Weights {
  explicit Weights(std::uint64_t seed, bool large = false) {
    torch::manual_seed(seed);
    for (const auto& shape : shapes(large)) parameters.push_back(at::randn(shape).requires_grad_());
    parameters[2] = at::randn({8, 3, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  }
  static std::vector<std::vector<std::int64_t>> shapes(bool large) {
    return {{37, 5}, {1}, {8, 3, 5, 5}, {129}, {large ? 700'001 : 1001}, {4, 4, 4}};
  }
  /// The second parameter has a gradient only in even steps.
  void set_gradients(int step) {
    torch::manual_seed(1000 + static_cast<std::uint64_t>(step));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      Tensor& p = parameters[i];
      p.mutable_grad() = at::randn(p.sizes()).contiguous(p.suggest_memory_format());
      if (i == 1 && step % 2 == 1) p.mutable_grad().reset();
    }
  }
  Tensors parameters;
};

/// The output of golden.py for optimizers; null without Python's PyTorch.
const Json& golden_optimizers() {
  static const Json values = golden("optimizers");
  return values;
}

/// The largest relative difference of a tensor in the 2-norm. Elements count as at least 1, since they may
/// pass 0.
double difference(const Tensors& a, const Tensors& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double least = std::sqrt(static_cast<double>(b[i].numel()));
    worst =
        std::max(worst, (a[i] - b[i]).norm().item<double>() / std::max(b[i].norm().item<double>(), least));
  }
  return worst;
}
}  // namespace

TEST_CASE("Optimizers match PyTorch in Python") {
  if (golden_optimizers().is_null()) {
    WARN("no PyTorch for Python on this machine: nothing compared");
    return;
  }
  const Json& expected = golden_optimizers().at("dense");
  CHECK(expected.size() == optimizers().size());
  for (const auto& [name, make] : optimizers()) {
    for (const std::string way : {"plain", "fused", "on the device"}) {
      Tensors parameters{parameter(0, 23), parameter(5, 4)};
      const MadeOptimizer optimizer = make(parameters);
      FusedStep fast(*optimizer);
      DeviceStep on_device(*optimizer);
      if ((way == "fused" && !is_fusable(name)) || (way == "on the device" && !on_device.problem().empty()))
        continue;
      INFO(name << " " << way);
      for (int step = 0; step < 10; ++step) {
        for (Tensor& p : parameters) set_gradient(p, step);
        if (way == "fused") {
          REQUIRE(fast.step());
        } else if (way == "on the device") {
          on_device.step();
        } else {
          optimizer->step();
        }
      }
      check_values(parameters, expected.at(name));
    }
  }
}

TEST_CASE("Adafactor and Muon match transcriptions of their papers") {
  if (golden_optimizers().is_null()) {
    WARN("no PyTorch for Python on this machine: nothing compared");
    return;
  }
  const std::map<std::string, std::function<MadeOptimizer(Tensors)>> made = {
      {"Adafactor", with<optim::Adafactor>(optim::AdafactorOptions())},
      {"Adafactor decay",
       with<optim::Adafactor>(optim::AdafactorOptions(0.05).beta2_decay(-0.6).d(1.5).weight_decay(0.1))},
      {"Muon", with<optim::Muon>(optim::MuonOptions(0.02))},
      {"Muon scaled", with<optim::Muon>(optim::MuonOptions(0.05)
                                            .nesterov(false)
                                            .momentum(0.8)
                                            .adjust_lr_fn("match_rms_adamw")
                                            .weight_decay(0))}};
  const Json& expected = golden_optimizers().at("transcribed");
  CHECK(expected.size() == made.size());
  for (const auto& [name, make] : made) {
    INFO(name);
    Tensors parameters{parameter(0, 24).detach().view({6, 4}).requires_grad_(),
                       parameter(1, 21).detach().view({3, 7}).requires_grad_()};
    if (name.starts_with("Adafactor")) parameters.push_back(parameter(2, 5));
    const MadeOptimizer optimizer = make(parameters);
    for (int step = 0; step < 10; ++step) {
      for (Tensor& p : parameters) set_gradient(p, step);
      optimizer->step();
    }
    check_values(parameters, expected.at(name), 1e-4);
  }
}

TEST_CASE("SparseAdam matches PyTorch, and leaves rows without a gradient as they are") {
  auto table = torch::nn::Embedding(torch::nn::EmbeddingOptions(5, 3).sparse(true));
  table->weight.set_data(parameter(0, 15).detach().view({5, 3}));
  optim::SparseAdam optimizer(table->parameters(), optim::SparseAdamOptions(0.05).betas({0.8, 0.95}));
  for (int step = 0; step < 10; ++step) {
    const Tensor before = table->weight.detach().clone();
    optimizer.zero_grad();
    table(torch::tensor({step % 5, (2 * step + 1) % 5, step % 5})).square().sum().backward();
    optimizer.step();
    for (int row = 0; row < 5; ++row) {
      const bool used = row == step % 5 || row == (2 * step + 1) % 5;
      CHECK(at::equal(before[row], table->weight[row]) != used);
    }
  }
  if (!golden_optimizers().is_null()) check_values({table->weight}, golden_optimizers().at("SparseAdam"));
  table->weight.mutable_grad() = at::zeros({5, 3});
  CHECK_THROWS_WITH(optimizer.step(), Catch::Contains("[5, 3] is dense; SparseAdam takes sparse"));
}

TEST_CASE("LBFGS matches PyTorch") {
  if (golden_optimizers().is_null()) {
    WARN("no PyTorch for Python on this machine: nothing compared");
    return;
  }
  for (const std::string name : {"LBFGS", "LBFGS search"}) {
    INFO(name);
    Tensor p = parameter(0, 7);
    auto options = lib::LBFGSOptions(name == "LBFGS" ? 0.1 : 1).max_iter(6).history_size(4);
    if (name != "LBFGS") options.line_search_fn("strong_wolfe");
    lib::LBFGS optimizer(Tensors{p}, options);
    for (int step = 0; step < 2; ++step) {
      optimizer.step([&] {
        optimizer.zero_grad();
        Tensor loss = ((p - 0.5).square() * torch::arange(1.0, 8.0)).sum() + p.pow(4).sum();
        loss.backward();
        return loss;
      });
    }
    check_values({p}, golden_optimizers().at(name), 1e-4);
  }
}

TEST_CASE("The fused step matches LibTorch's for fifty steps, and either can continue the other") {
  for (const auto& [name, make] : optimizers()) {
    INFO(name);
    Weights ours(1), theirs(1), mixed(1);
    const MadeOptimizer fused = make(ours.parameters), plain = make(theirs.parameters),
                        both = make(mixed.parameters);
    FusedStep fast(*fused), fast_mixed(*both);
    for (int step = 1; step <= 50; ++step) {
      ours.set_gradients(step), theirs.set_gradients(step), mixed.set_gradients(step);
      for (lib::Optimizer* one : {fused.get(), plain.get(), both.get()}) {
        auto& options = one->param_groups()[0].options();
        if (step == 25) options.set_lr(options.get_lr() / 2);
      }
      plain->step();
      REQUIRE(fast.step() == is_fusable(name));
      if (!is_fusable(name)) break;
      if (step % 3 == 2 || !fast_mixed.step()) both->step();
    }
    if (!is_fusable(name)) continue;
    CHECK(difference(ours.parameters, theirs.parameters) < 1e-6);
    if (name.starts_with("SGD")) CHECK(same_bits(ours.parameters, theirs.parameters));
    CHECK(difference(mixed.parameters, theirs.parameters) < 1e-6);
    CHECK(fused->state().size() == plain->state().size());
  }
}

TEST_CASE("The step on the device matches LibTorch's for fifty steps, and either can continue the other") {
  int compared = 0;
  for (const auto& [name, make] : optimizers()) {
    INFO(name);
    Weights theirs(1), mixed(1);
    const MadeOptimizer plain = make(theirs.parameters), both = make(mixed.parameters);
    DeviceStep on_device(*both);
    if (!on_device.problem().empty()) continue;
    ++compared;
    for (int step = 1; step <= 50; ++step) {
      theirs.set_gradients(step), mixed.set_gradients(step);
      for (lib::Optimizer* one : {plain.get(), both.get()}) {
        auto& options = one->param_groups()[0].options();
        if (step == 25) options.set_lr(options.get_lr() / 2);
      }
      plain->step();
      if (step % 3 == 2) {
        both->step();
      } else {
        on_device.step();
      }
    }
    CHECK(difference(mixed.parameters, theirs.parameters) < 1e-6);
    CHECK(both->state().size() == plain->state().size());
  }
  CHECK(compared == 6);
  torch::nn::Embedding table(torch::nn::EmbeddingOptions(5, 3).sparse(true));
  lib::SGD optimizer(table->parameters(), 0.1);
  table(torch::tensor({1, 2})).sum().backward();
  CHECK_THROWS_WITH(DeviceStep(optimizer).step(), Catch::Contains("[5, 3] has a sparse gradient"));
}

TEST_CASE("The fused step and the clipped norm are bit-identical with one and two threads") {
  const int before = at::get_num_threads();
  for (const std::string name : {"SGD nesterov", "Adam amsgrad", "AdamW", "Adadelta"}) {
    INFO(name);
    std::vector<Tensors> results;
    std::vector<double> norms;
    for (const int threads : {1, 2}) {
      at::set_num_threads(threads);
      Weights weights(2, true);
      const MadeOptimizer optimizer = optimizers().at(name)(weights.parameters);
      FusedStep fast(*optimizer);
      for (int step = 0; step < 4; ++step) {
        weights.set_gradients(step);
        norms.push_back(clip_grad_norm(weights.parameters, 30));
        REQUIRE(fast.step());
      }
      results.push_back(weights.parameters);
    }
    CHECK(same_bits(results[0], results[1]));
    CHECK(std::vector<double>(norms.begin(), norms.begin() + 4) ==
          std::vector<double>(norms.begin() + 4, norms.end()));
  }
  at::set_num_threads(before);
}

TEST_CASE("The fused step skips unsupported parameters") {
  class Own : public lib::SGD {
   public:
    using SGD::SGD;
  };
  Tensor p = at::full({4}, 1.0).requires_grad_();
  p.mutable_grad() = at::full({4}, 1.0);
  Own own(Tensors{p}, lib::SGDOptions(0.1));
  CHECK_FALSE(FusedStep(own).step());

  Tensor wide = at::full({4}, 1.0, at::kDouble).requires_grad_();
  wide.mutable_grad() = at::full({4}, 1.0, at::kDouble);
  lib::SGD mixed(Tensors{p, wide}, lib::SGDOptions(0.1).momentum(0.9));
  FusedStep step(mixed);
  CHECK_FALSE(step.step());
  CHECK(mixed.state().empty());
  CHECK(at::equal(p, at::full({4}, 1.0)));
  wide.mutable_grad().reset();
  CHECK(step.step());
  CHECK(p[0].item<float>() == Approx(0.9));

  Tensor square = at::full({3, 3}, 1.0).requires_grad_();
  square.mutable_grad() = at::randn({3, 3}).t();
  lib::SGD other(Tensors{square}, lib::SGDOptions(0.1));
  CHECK_FALSE(FusedStep(other).step());
}

TEST_CASE("The fused step follows added parameter groups and replaced state") {
  Weights weights(3);
  lib::SGD optimizer(Tensors{weights.parameters[0]}, lib::SGDOptions(0.1).momentum(0.9));
  FusedStep fast(optimizer);
  weights.set_gradients(0);
  REQUIRE(fast.step());
  optimizer.add_param_group(lib::OptimizerParamGroup(
      {weights.parameters[3]}, std::make_unique<lib::SGDOptions>(lib::SGDOptions(0.0))));
  const Tensor still = weights.parameters[3].detach().clone();
  REQUIRE(fast.step());
  CHECK(at::equal(still, weights.parameters[3]));
  optimizer.state().clear();
  REQUIRE(fast.step());
  auto& state = static_cast<lib::SGDParamState&>(*optimizer.state().begin()->second);
  CHECK(at::equal(state.momentum_buffer(), weights.parameters[0].grad()));
}

TEST_CASE("The optimizers support LibTorch's archives") {
  for (const auto& [name, make] : optimizers()) {
    if (name.find(' ') != std::string::npos) continue;
    INFO(name);
    Weights first(5), second(5);
    const MadeOptimizer one = make(first.parameters), two = make(second.parameters);
    first.set_gradients(0), second.set_gradients(0);
    one->step();
    std::stringstream stream;
    torch::save(*one, stream);
    torch::load(*two, stream);
    CHECK(two->state().size() == one->state().size());
    // LibTorch 1.13 restores the state alone, 2.6 the options as well.
    for (std::size_t i = 0; i < first.parameters.size(); ++i)
      second.parameters[i].detach().copy_(first.parameters[i]);
    one->step(), two->step();
    CHECK(same_bits(first.parameters, second.parameters));
  }
}

TEST_CASE("The optimizers refuse options out of range and gradients of the wrong layout") {
  Tensors one{parameter(0, 4)};
  const auto refused = [&]<typename Kind, typename Options>(Options options, const char* reason) {
    CHECK_THROWS_WITH(Kind(one, options), Catch::Contains(reason));
  };
  using namespace optim;
  refused.operator()<Adadelta>(AdadeltaOptions().rho(1.5), "rho is 1.5, not in [0, 1]");
  refused.operator()<Adamax>(AdamaxOptions().betas({0.9, 1}), "betas is 1, not in [0, 1)");
  refused.operator()<NAdam>(NAdamOptions().momentum_decay(-1), "momentum_decay is -1");
  refused.operator()<RAdam>(RAdamOptions(-1), "lr is -1");
  refused.operator()<ASGD>(ASGDOptions().weight_decay(-1), "weight_decay is -1");
  refused.operator()<Rprop>(RpropOptions().etas({0.5, 1}), "the second must be above 1");
  refused.operator()<SparseAdam>(SparseAdamOptions().eps(0), "must be above 0");
  refused.operator()<Adafactor>(AdafactorOptions().d(0.5), "d is 0.5");
  refused.operator()<Muon>(MuonOptions().adjust_lr_fn("best"), "\"best\", neither");
  one[0].mutable_grad() = at::ones({4});
  CHECK_THROWS_WITH(Muon(one).step(), Catch::Contains("[4]; it takes those with two dimensions"));
  one[0].mutable_grad() = at::ones({4}).to_sparse();
  CHECK_THROWS_WITH(Adamax(one).step(), Catch::Contains("sparse; only SparseAdam"));
}

TEST_CASE("Clipping by norm scales all gradients together, like torch.nn.utils") {
  Weights weights(6);
  for (const double type : {2.0, 1.0, 3.0, std::numeric_limits<double>::infinity()}) {
    weights.set_gradients(0);
    double expected = 0;
    for (const Tensor& p : weights.parameters) {
      const double part = std::isinf(type) ? p.grad().abs().max().item<double>()
                                           : p.grad().to(at::kDouble).abs().pow(type).sum().item<double>();
      expected = std::isinf(type) ? std::max(expected, part) : expected + part;
    }
    if (!std::isinf(type)) expected = std::pow(expected, 1 / type);
    const Tensors before{weights.parameters[0].grad().clone()};
    CHECK(clip_grad_norm(weights.parameters, 1e9, type) == Approx(expected).epsilon(1e-5));
    CHECK(same_bits({weights.parameters[0].grad()}, before));
    CHECK(clip_grad_norm(weights.parameters, 2.5, type) == Approx(expected).epsilon(1e-5));
    CHECK(clip_grad_norm(weights.parameters, 1e9, type) == Approx(2.5).epsilon(1e-5));
    CHECK(difference({weights.parameters[0].grad()}, {before[0] * (2.5 / expected)}) < 1e-5);
  }
  for (Tensor& p : weights.parameters) p.mutable_grad().reset();
  CHECK(clip_grad_norm(weights.parameters, 1) == 0);
}

TEST_CASE("A non-finite gradient shows in the norm") {
  const auto infinity = std::numeric_limits<double>::infinity(),
             nan = std::numeric_limits<double>::quiet_NaN();
  for (const double type : {2.0, infinity}) {
    Weights weights(7);
    weights.set_gradients(0);
    weights.parameters[3].mutable_grad()[7] = infinity;
    CHECK(clip_grad_norm(weights.parameters, 1, type) == infinity);
    CHECK(weights.parameters[0].grad().abs().max().item<double>() == 0);
    weights.set_gradients(0);
    weights.parameters[3].mutable_grad()[7] = nan;
    CHECK(std::isnan(clip_grad_norm(weights.parameters, 1, type)));
    CHECK(std::isnan(weights.parameters[0].grad().sum().item<double>()));
  }
}

TEST_CASE("Clipping by value bounds every element") {
  Weights weights(8);
  weights.set_gradients(0);
  clip_grad_value(weights.parameters, 0.25);
  for (const Tensor& p : weights.parameters) CHECK(p.grad().abs().max().item<double>() == 0.25);
}

}  // namespace det
