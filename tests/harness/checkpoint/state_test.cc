// A trial's state restored into another trial of the same shape continues bit for bit.
#include "harness/src/checkpoint/state.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
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
/// Moves each parameter against the sign of its momentum (Chen et al., Symbolic Discovery of Optimization
/// Algorithms, 2023). The momentum is a member, so only save() and load() reach it.
class OwnOptimizer final : public optim::Optimizer {
 public:
  OwnOptimizer(std::vector<torch::Tensor> parameters, double lr)
      : Optimizer(std::move(parameters), std::make_unique<optim::SGDOptions>(lr)) {
    for (const torch::Tensor& p : param_groups_[0].params()) momentum_.push_back(torch::zeros_like(p));
  }
  torch::Tensor step(LossClosure closure = nullptr) override {
    if (closure != nullptr) closure();
    torch::NoGradGuard no_grad;
    const double lr = param_groups_[0].options().get_lr();
    for (std::size_t i = 0; i < momentum_.size(); ++i) {
      torch::Tensor& p = param_groups_[0].params()[i];
      p.sub_(lr * momentum_[i].lerp(p.grad(), 0.1).sign());
      momentum_[i].lerp_(p.grad(), 0.01);
    }
    ++steps_;
    return {};
  }
  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("steps", steps_);
    archive.write("text", std::string("lion"));
    archive.write("pair", std::tuple<double, double>(0.1, 0.2));
    archive.write("momentum", momentum_);
  }
  void load(torch::serialize::InputArchive& archive) override {
    torch::IValue steps, pair, momentum;
    archive.read("steps", steps), archive.read("pair", pair), archive.read("momentum", momentum);
    steps_ = steps.toInt();
    if (pair.to<std::tuple<double, double>>() != std::tuple<double, double>(0.1, 0.2)) std::abort();
    momentum_ = momentum.toTensorVector();
  }

 private:
  std::vector<torch::Tensor> momentum_;
  std::int64_t steps_ = 0;
};

/// A class derived from one of LibTorch's is not taken for it.
class OwnAdam final : public optim::Adam {
 public:
  using Adam::Adam;
};

void nesterov(Fixture& f) {
  one<optim::SGD>(f, optim::SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01));
}
void amsgrad(Fixture& f) { one<optim::Adam>(f, optim::AdamOptions(0.01).amsgrad(true).betas({0.8, 0.95})); }
void two_with_groups(Fixture& f) {
  auto sgd = optim::SGD(f.model[0]->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  sgd.add_param_group(optim::OptimizerParamGroup(
      f.model[1]->parameters(), std::make_unique<optim::SGDOptions>(optim::SGDOptions(0.3))));
  f.optimize(std::move(sgd));
  f.optimize(optim::Adam(f.model[2]->parameters(), optim::AdamOptions(0.01)));
}
void muon_and_adamw(Fixture& f) {
  f.optimize(det::optim::Muon(std::vector<torch::Tensor>{f.model[0]->named_parameters()["weight"]},
                              det::optim::MuonOptions(0.02).adjust_lr_fn("match_rms_adamw")));
  f.optimize(optim::AdamW(f.model[2]->parameters(), optim::AdamWOptions(0.01)));
}

using Optimizers = std::vector<std::pair<std::string, Optimize>>;
const Optimizers kOptimizers{
    {"SGD", [](Fixture& f) { one<optim::SGD>(f, optim::SGDOptions(0.1)); }},
    {"SGD with momentum", nesterov},
    {"Adam", [](Fixture& f) { one<optim::Adam>(f, optim::AdamOptions(0.01)); }},
    {"Adam with amsgrad", amsgrad},
    {"AdamW", [](Fixture& f) { one<optim::AdamW>(f, optim::AdamWOptions(0.01).weight_decay(0.1)); }},
    {"RMSprop", [](Fixture& f) { one<optim::RMSprop>(f, optim::RMSpropOptions(0.01)); }},
    {"RMSprop, centered, with momentum",
     [](Fixture& f) { one<optim::RMSprop>(f, optim::RMSpropOptions(0.01).centered(true).momentum(0.9)); }},
    {"Adagrad", [](Fixture& f) { one<optim::Adagrad>(f, optim::AdagradOptions(0.1).lr_decay(0.01)); }},
    {"two optimizers with groups", two_with_groups},
};

const Optimizers kMoreOptimizers{
    {"Adadelta", [](Fixture& f) { one<det::optim::Adadelta>(f, det::optim::AdadeltaOptions()); }},
    {"Adamax", [](Fixture& f) { one<det::optim::Adamax>(f, det::optim::AdamaxOptions(0.02)); }},
    {"NAdam", [](Fixture& f) { one<det::optim::NAdam>(f, det::optim::NAdamOptions(0.02)); }},
    {"RAdam", [](Fixture& f) { one<det::optim::RAdam>(f, det::optim::RAdamOptions(0.02)); }},
    {"ASGD", [](Fixture& f) { one<det::optim::ASGD>(f, det::optim::ASGDOptions(0.02).t0(2)); }},
    {"Rprop", [](Fixture& f) { one<det::optim::Rprop>(f, det::optim::RpropOptions(0.02)); }},
    {"Adafactor", [](Fixture& f) { one<det::optim::Adafactor>(f, det::optim::AdafactorOptions(0.02)); }},
    {"Muon and AdamW", muon_and_adamw},
    {"LBFGS", [](Fixture& f) { one<optim::LBFGS>(f, optim::LBFGSOptions(0.1).max_iter(3).history_size(2)); }},
    {"a user's class", [](Fixture& f) { f.optimize(OwnOptimizer(f.model->parameters(), 0.01)); }},
    {"a user's class derived from Adam", [](Fixture& f) { one<OwnAdam>(f, optim::AdamOptions(0.01)); }},
};

Optimizers all_optimizers() {
  Optimizers all = kOptimizers;
  all.insert(all.end(), kMoreOptimizers.begin(), kMoreOptimizers.end());
  return all;
}

/// Passes a value through a file, like a checkpoint.
pickle::Value through_file(const pickle::Value& value) {
  auto directory = TemporaryDirectory::create().value();
  pickle::save(value, directory.path() + "/x");
  return pickle::load(directory.path() + "/x");
}

TEST_CASE("a trial with any optimizer continues from its state bit for bit") {
  for (const auto& [name, optimize] : all_optimizers()) {
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
    apply_state(second.wrapped, state);
    apply_generators(torch::kCPU, 7, 0, state, 5);
    CHECK(second.digest() == here);
    second.train(3);
    CHECK(second.digest() == expected);
  }
}

TEST_CASE("a state saved before the first step is restored as such") {
  for (const auto& [name, optimize] : all_optimizers()) {
    INFO(name);
    Fixture first(1), second(2);
    optimize(first), optimize(second);
    const pickle::Value fresh = through_file(first.state());
    second.train(2);
    apply_state(second.wrapped, fresh);
    CHECK(second.digest() == first.digest());
    second.train(1);
  }
}

TEST_CASE("the learning rate of a user's optimizer is part of the state") {
  for (const bool own : {true, false}) {
    Fixture first(1), second(2);
    for (Fixture* f : {&first, &second}) {
      own ? void(f->optimize(OwnOptimizer(f->model->parameters(), 0.01)))
          : void(f->optimize(OwnAdam(f->model->parameters(), optim::AdamOptions(0.01))));
    }
    first.wrapped.optimizers[0]->param_groups()[0].options().set_lr(0.125);
    apply_state(second.wrapped, through_file(first.state()));
    CHECK(second.wrapped.optimizers[0]->param_groups()[0].options().get_lr() == 0.125);
  }
}

TEST_CASE("an optimizer whose save() writes nothing is refused") {
  class Forgetful final : public optim::Optimizer {
   public:
    explicit Forgetful(std::vector<torch::Tensor> parameters)
        : Optimizer(std::move(parameters), std::make_unique<optim::SGDOptions>(0.1)) {}
    torch::Tensor step(LossClosure /*closure*/ = nullptr) override { return {}; }
  };
  Fixture fixture(1);
  Forgetful optimizer(fixture.model->parameters());
  CHECK_THROWS_WITH(check_can_be_saved(parameter_names(fixture.wrapped), optimizer),
                    Catch::Contains("its save() writes nothing; override save() and load()"));
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
  apply_state(second.wrapped, through_file(first.state()));
  const LRScheduler& saved = *first.wrapped.lr_schedulers[0].scheduler;
  const LRScheduler& put = *second.wrapped.lr_schedulers[0].scheduler;
  CHECK(put.state_dict() == saved.state_dict());
  CHECK(put.get_last_lr() == std::vector<double>{0.25});
  CHECK(dynamic_cast<Counting&>(*second.wrapped.callbacks[0].second).count == 4);
  CHECK(second.wrapped.scaler->get_scale() == 128);
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
  SECTION("a user's optimizer") {
    second.wrapped.optimizers.clear();
    second.optimize(OwnOptimizer(second.model->parameters(), 0.1));
    expected = "optimizer_0 is the state of another class of optimizer";
  }
  SECTION("no schedule") {
    second.wrapped.lr_schedulers.clear();
    expected = "it holds 1 learning-rate schedules, the trial wrapped 0";
  }
  CHECK_THROWS_WITH(apply_state(second.wrapped, through_file(first.state())), Catch::Contains(expected));
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
