// A trial's state restored into another trial of the same shape continues bit for bit.
#include "harness/src/checkpoint/state.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <catch2/catch.hpp>

#include "checkpoint_fixture.h"

namespace det {
namespace {

using testing::Counting;
using testing::Fixture;

/// Adds an optimizer to a fixture.
using Optimize = void (*)(Fixture&);
template <typename Optimizer, typename Options>
void one(Fixture& fixture, const Options& options) {
  fixture.optimize(Optimizer(fixture.model->parameters(), options));
}
namespace optim = torch::optim;
const std::vector<std::pair<std::string, Optimize>> kOptimizers{
    {"SGD", [](Fixture& f) { one<optim::SGD>(f, optim::SGDOptions(0.1)); }},
    {"SGD with momentum",
     [](Fixture& f) {
       one<optim::SGD>(f, optim::SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01));
     }},
    {"Adam", [](Fixture& f) { one<optim::Adam>(f, optim::AdamOptions(0.01)); }},
    {"Adam with amsgrad",
     [](Fixture& f) {
       one<optim::Adam>(f, optim::AdamOptions(0.01).amsgrad(true).betas({0.8, 0.95}));
     }},
    {"AdamW", [](Fixture& f) { one<optim::AdamW>(f, optim::AdamWOptions(0.01).weight_decay(0.1)); }},
    {"RMSprop", [](Fixture& f) { one<optim::RMSprop>(f, optim::RMSpropOptions(0.01)); }},
    {"RMSprop, centered, with momentum",
     [](Fixture& f) { one<optim::RMSprop>(f, optim::RMSpropOptions(0.01).centered(true).momentum(0.9)); }},
    {"Adagrad", [](Fixture& f) { one<optim::Adagrad>(f, optim::AdagradOptions(0.1).lr_decay(0.01)); }},
    {"two optimizers with groups",
     [](Fixture& f) {
       auto sgd = optim::SGD(f.model[0]->parameters(), optim::SGDOptions(0.1).momentum(0.9));
       sgd.add_param_group(optim::OptimizerParamGroup(
           f.model[1]->parameters(), std::make_unique<optim::SGDOptions>(optim::SGDOptions(0.3))));
       f.optimize(std::move(sgd));
       f.optimize(optim::Adam(f.model[2]->parameters(), optim::AdamOptions(0.01)));
     }},
};

/// Passes a value through a file, like a checkpoint.
pickle::Value through_file(const pickle::Value& value) {
  auto directory = TemporaryDirectory::create().value();
  pickle::save(value, directory.path() + "/x");
  return pickle::load(directory.path() + "/x");
}

TEST_CASE("a trial with any optimizer continues from its state bit for bit") {
  for (const auto& [name, optimize] : kOptimizers) {
    INFO(name);
    Fixture first(1), second(2);
    optimize(first), optimize(second);
    second.train(2);  // state that the restore must replace
    torch::manual_seed(3);
    first.train(5);
    const pickle::Value state = through_file(first.state());
    const std::string here = first.digest();
    first.train(3);
    const std::string expected = first.digest();
    apply_state(second.run, second.wrapped, state, true, 5);
    CHECK(second.digest() == here);
    second.train(3);
    CHECK(second.digest() == expected);
  }
}

TEST_CASE("a state saved before the first step is restored as such") {
  for (const auto& [name, optimize] : kOptimizers) {
    INFO(name);
    Fixture first(1), second(2);
    optimize(first), optimize(second);
    const pickle::Value fresh = through_file(first.state());
    second.train(2);
    apply_state(second.run, second.wrapped, fresh, true, 0);
    CHECK(second.digest() == first.digest());
    second.train(1);
  }
}

TEST_CASE("schedules, callbacks and the loss scale are part of the state") {
  Fixture first(1), second(2);
  first.add_all(), second.add_all();
  first.wrapped.lr_schedulers[0].scheduler->step();
  dynamic_cast<Counting&>(*first.wrapped.callbacks[0].second).count = 4;
  Json scaler = first.wrapped.scaler->state_dict();
  scaler["scale"] = 128.0;
  scaler["_growth_tracker"] = 17;
  first.wrapped.scaler->load_state_dict(scaler);
  apply_state(second.run, second.wrapped, through_file(first.state()), false, 0);
  const LRScheduler& saved = *first.wrapped.lr_schedulers[0].scheduler;
  const LRScheduler& put = *second.wrapped.lr_schedulers[0].scheduler;
  CHECK(put.state_dict() == saved.state_dict());
  CHECK(put.get_last_lr() == std::vector<double>{0.25});
  CHECK(dynamic_cast<Counting&>(*second.wrapped.callbacks[0].second).count == 4);
  CHECK(second.wrapped.scaler->get_scale() == 128);
}

TEST_CASE("a state without generators leaves the generators unchanged") {
  Fixture first(1), second(2);
  const pickle::Value state = through_file(first.state());
  torch::manual_seed(11);
  const std::string before = generator_bytes(second.run.device);
  apply_state(second.run, second.wrapped, state, false, 0);
  CHECK(generator_bytes(second.run.device) == before);
}

TEST_CASE("every rank restores its own generator, and a new rank gets its own seed") {
  Fixture fixture(1);
  std::vector<std::string> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    torch::manual_seed(100 + rank);
    (void)at::rand({rank + 1});
    ranks.push_back(generator_bytes(fixture.run.device));
  }
  const pickle::Value state = through_file(collect_state(fixture.wrapped, ranks));
  for (int rank = 0; rank < 3; ++rank) {
    apply_generators(torch::kCPU, 7, rank, state, 5);
    CHECK(generator_bytes(fixture.run.device) == ranks[rank]);
  }
  const auto seeded = [&](std::int64_t seed, int rank, std::int64_t steps) {
    apply_generators(torch::kCPU, seed, rank, state, steps);
    return generator_bytes(fixture.run.device);
  };
  CHECK(seeded(7, 3, 5) == seeded(7, 3, 5));
  CHECK(seeded(7, 3, 5) != seeded(7, 4, 5));
  CHECK(seeded(7, 3, 5) != seeded(7, 3, 6));
  CHECK(seeded(7, 3, 5) != seeded(8, 3, 5));
}

TEST_CASE("a mismatch is reported by name") {
  Fixture first(1), second(2);
  first.add_all(), second.add_all();
  first.train(1);
  std::string expected;
  SECTION("another model") {
    second.wrapped.models[0] = torch::nn::Sequential(torch::nn::Linear(3, 9)).ptr();
    expected = "model_0.0.weight is [8, 3], the model's is [9, 3]";
  }
  SECTION("more models") {
    second.wrapped.models.push_back(torch::nn::Linear(1, 1).ptr());
    expected = "it holds 1 models, the trial wrapped 2";
  }
  SECTION("fewer tensors") {
    second.wrapped.models[0] = torch::nn::Sequential(torch::nn::Linear(3, 8)).ptr();
    expected = "model_0.1.weight is not in the model";
  }
  SECTION("another optimizer") {
    second.wrapped.lr_schedulers.clear();
    second.wrapped.optimizers.clear();
    second.optimize(torch::optim::SGD(second.model->parameters(), 0.1));
    expected = "optimizer_0.momentum is missing";
  }
  SECTION("no schedule") {
    second.wrapped.lr_schedulers.clear();
    expected = "it holds 1 learning-rate schedules, the trial wrapped 0";
  }
  CHECK_THROWS_WITH(apply_state(second.run, second.wrapped, through_file(first.state()), true, 1),
                    Catch::Contains(expected));
}

TEST_CASE("the prefix of Python's data parallel wrapper is stripped") {
  torch::nn::Linear from(3, 2), to(3, 2);
  pickle::Dict wrapped;
  const pickle::Value state = collect_model(*from);
  for (const auto& [name, value] : state.as<pickle::Dict>()->items) wrapped.add("module." + name, value);
  apply_model(*to, wrapped, "model_0");
  CHECK(at::equal(from->weight, to->weight));
  CHECK(at::equal(from->bias, to->bias));
}

}  // namespace
}  // namespace det
