// Most tests compare the schedules with PyTorch's own values (golden.py).
#include <ATen/ops/zeros.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "det/lr_scheduler_composed.h"
#include "optim_golden.h"

namespace det {
namespace {

using torch::optim::Adam;
using torch::optim::AdamOptions;
using torch::optim::Optimizer;
using torch::optim::OptimizerParamGroup;
using torch::optim::SGD;
using torch::optim::SGDOptions;
using Row = std::vector<double>;
using Rows = std::vector<Row>;

constexpr int kSteps = 60, kSavedAt = 20, kHandAt = 30;

template <typename Kind, typename Options>
std::unique_ptr<Optimizer> optimizer_with(Options first, Options second) {
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{at::zeros({2})}, std::make_unique<Options>(first));
  groups.emplace_back(std::vector<torch::Tensor>{at::zeros({2})}, std::make_unique<Options>(second));
  return std::make_unique<Kind>(std::move(groups), first);
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name) {
  if (name.find("Adam") != std::string::npos)
    return optimizer_with<Adam>(AdamOptions(0.1), AdamOptions(0.02));
  return optimizer_with<SGD>(SGDOptions(0.1).momentum(0.9), SGDOptions(0.02).momentum(0.9));
}

using MadeSchedule = std::unique_ptr<LRScheduler>;
using Make = std::function<MadeSchedule(Optimizer&)>;

template <typename S, typename... Args>
MadeSchedule made(Args&&... args) {
  return std::make_unique<S>(std::forward<Args>(args)...);
}

using Kinds = std::map<std::string, Make>;

Kinds falling_schedules() {
  return {
      {"StepLR", [](Optimizer& o) { return made<StepLR>(o, StepLROptions{.step_size = 7, .gamma = 0.5}); }},
      {"MultiStepLR",
       [](Optimizer& o) {
         return made<MultiStepLR>(o, MultiStepLROptions{.milestones = {5, 17, 17, 40}, .gamma = 0.3});
       }},
      {"ConstantLR",
       [](Optimizer& o) { return made<ConstantLR>(o, ConstantLROptions{.factor = 0.25, .total_iters = 9}); }},
      {"LinearLR",
       [](Optimizer& o) {
         return made<LinearLR>(o, LinearLROptions{.start_factor = 0.1, .end_factor = 0.9, .total_iters = 33});
       }},
      {"ExponentialLR",
       [](Optimizer& o) { return made<ExponentialLR>(o, ExponentialLROptions{.gamma = 0.93}); }},
      {"PolynomialLR",
       [](Optimizer& o) {
         return made<PolynomialLR>(o, PolynomialLROptions{.total_iters = 45, .power = 1.7});
       }},
      {"CosineAnnealingLR",
       [](Optimizer& o) {
         return made<CosineAnnealingLR>(o, CosineAnnealingLROptions{.T_max = 13, .eta_min = 0.001});
       }},
      {"CosineAnnealingWarmRestarts",
       [](Optimizer& o) {
         return made<CosineAnnealingWarmRestarts>(
             o, CosineAnnealingWarmRestartsOptions{.T_0 = 7, .T_mult = 2, .eta_min = 0.002});
       }},
      {"LambdaLR",
       [](Optimizer& o) {
         return made<LambdaLR>(o,
                               std::vector<LRFunction>{[](std::int64_t step) { return std::pow(0.95, step); },
                                                       [](std::int64_t step) { return 1.0 / (1 + step); }});
       }},
      {"MultiplicativeLR",
       [](Optimizer& o) {
         return made<MultiplicativeLR>(o, [](std::int64_t step) { return 1 - 0.5 / (step + 1); });
       }},
  };
}

Kinds cycling_schedules() {
  return {
      {"OneCycleLR",
       [](Optimizer& o) {
         return made<OneCycleLR>(o, OneCycleLROptions{.max_lr = {0.5, 0.3}, .total_steps = 60});
       }},
      {"OneCycleLR linear",
       [](Optimizer& o) {
         return made<OneCycleLR>(o, OneCycleLROptions{.max_lr = 0.4,
                                                      .epochs = 6,
                                                      .steps_per_epoch = 10,
                                                      .pct_start = 0.25,
                                                      .anneal_strategy = "linear",
                                                      .base_momentum = 0.8,
                                                      .max_momentum = 0.9,
                                                      .div_factor = 10,
                                                      .final_div_factor = 100,
                                                      .three_phase = true});
       }},
      {"OneCycleLR Adam",
       [](Optimizer& o) {
         return made<OneCycleLR>(
             o, OneCycleLROptions{.max_lr = 0.5, .total_steps = 70, .pct_start = 0.4, .three_phase = true});
       }},
      {"CyclicLR",
       [](Optimizer& o) {
         return made<CyclicLR>(
             o,
             CyclicLROptions{.base_lr = 0.01, .max_lr = {0.2, 0.1}, .step_size_up = 6, .step_size_down = 10});
       }},
      {"CyclicLR triangular2",
       [](Optimizer& o) {
         return made<CyclicLR>(o, CyclicLROptions{.base_lr = 0.01,
                                                  .max_lr = 0.3,
                                                  .step_size_up = 8,
                                                  .mode = "triangular2",
                                                  .cycle_momentum = false});
       }},
      {"CyclicLR exp_range",
       [](Optimizer& o) {
         return made<CyclicLR>(
             o, CyclicLROptions{
                    .base_lr = 0.02, .max_lr = 0.3, .step_size_up = 5, .mode = "exp_range", .gamma = 0.98});
       }},
  };
}

Kinds composed_schedules() {
  return {
      {"SequentialLR",
       [](Optimizer& o) {
         return made<SequentialLR>(o,
                                   Schedules{LinearLR(o, {.start_factor = 0.05, .total_iters = 10}),
                                             CosineAnnealingLR(o, {.T_max = 25, .eta_min = 1e-4}),
                                             ExponentialLR(o, {.gamma = 0.9})},
                                   std::vector<std::int64_t>{10, 40});
       }},
      {"SequentialLR restarts",
       [](Optimizer& o) {
         return made<SequentialLR>(
             o,
             Schedules{ConstantLR(o, {.factor = 0.5, .total_iters = 30}),
                       CosineAnnealingWarmRestarts(o, {.T_0 = 9}), StepLR(o, {.step_size = 4, .gamma = 0.7})},
             std::vector<std::int64_t>{15, 35});
       }},
      {"SequentialLR begins with restarts",
       [](Optimizer& o) {
         return made<SequentialLR>(o,
                                   Schedules{CosineAnnealingWarmRestarts(o, {.T_0 = 4, .eta_min = 0.002}),
                                             StepLR(o, {.step_size = 4, .gamma = 0.7})},
                                   std::vector<std::int64_t>{25});
       }},
      {"ChainedScheduler",
       [](Optimizer& o) {
         return made<ChainedScheduler>(
             Schedules{ConstantLR(o, {.factor = 0.1, .total_iters = 12}), ExponentialLR(o, {.gamma = 0.95})});
       }},
      {"ReduceLROnPlateau",
       [](Optimizer& o) {
         return made<ReduceLROnPlateau>(
             o,
             ReduceLROnPlateauOptions{.factor = 0.3, .patience = 3, .cooldown = 2, .min_lr = {0.001, 0.002}});
       }},
      {"ReduceLROnPlateau max",
       [](Optimizer& o) {
         return made<ReduceLROnPlateau>(
             o, ReduceLROnPlateauOptions{
                    .mode = "max", .patience = 1, .threshold = 0.01, .threshold_mode = "abs"});
       }},
  };
}

/// The same schedules as in golden.py.
const Kinds& schedules() {
  static const Kinds all = [] {
    Kinds merged = falling_schedules();
    merged.merge(cycling_schedules());
    merged.merge(composed_schedules());
    return merged;
  }();
  return all;
}

double& momentum(Optimizer& optimizer, std::size_t group) {
  auto& options = optimizer.param_groups().at(group).options();
  if (auto* adam = dynamic_cast<AdamOptions*>(&options)) return std::get<0>(adam->betas());
  return dynamic_cast<SGDOptions&>(options).momentum();
}
double lr(Optimizer& optimizer, std::size_t group = 0) {
  return optimizer.param_groups().at(group).options().get_lr();
}

Row row(Optimizer& o) { return {lr(o, 0), lr(o, 1), momentum(o, 0), momentum(o, 1)}; }

void advance(LRScheduler& schedule, int step) {
  if (auto* plateau = dynamic_cast<ReduceLROnPlateau*>(&schedule)) {
    plateau->step(step < 40 ? std::max(1.0 / (1 + step), 0.2) : 0.1 + 0.05 * std::sin(step));
  } else {
    schedule.step();
  }
}

Rows run(const std::string& name, bool by_hand, Json* saved = nullptr) {
  auto optimizer = make_optimizer(name);
  const MadeSchedule schedule = schedules().at(name)(*optimizer);
  Rows rows{row(*optimizer)};
  for (int step = 1; step <= kSteps; ++step) {
    advance(*schedule, step);
    rows.push_back(row(*optimizer));
    if (step == kSavedAt && saved != nullptr) {
      *saved = {{"state", schedule->state_dict()}, {"groups", Json::array()}};
      for (const std::size_t group : {0, 1}) {
        (*saved)["groups"].push_back(
            {{"lr", lr(*optimizer, group)}, {"momentum", momentum(*optimizer, group)}});
      }
    }
    if (by_hand && step == kHandAt) {
      for (auto& group : optimizer->param_groups()) group.options().set_lr(group.options().get_lr() * 0.5);
    }
  }
  return rows;
}

/// The rows that follow a saved state.
Rows go_on(const std::string& name, const Json& saved) {
  auto optimizer = make_optimizer(name);
  const MadeSchedule schedule = schedules().at(name)(*optimizer);
  schedule->load_state_dict(saved["state"]);
  for (const std::size_t group : {0, 1}) {
    optimizer->param_groups()[group].options().set_lr(saved["groups"][group]["lr"].get<double>());
    momentum(*optimizer, group) = saved["groups"][group]["momentum"].get<double>();
  }
  Rows rows;
  for (int step = kSavedAt + 1; step <= kSteps; ++step) {
    advance(*schedule, step);
    rows.push_back(row(*optimizer));
  }
  return rows;
}

/// The largest relative difference; for values near 0, the absolute one.
double difference(const Rows& ours, const Json& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    for (std::size_t j = 0; j < ours[i].size(); ++j) {
      const double expected = theirs[i][j].get<double>();
      const double apart = std::abs(ours[i][j] - expected) / std::max(std::abs(expected), 1e-7);
      worst = std::isnan(apart) ? 1 : std::max(worst, apart);
    }
  }
  return worst;
}

SGD sgd(double lr) { return SGD(std::vector<torch::Tensor>{at::zeros({1})}, SGDOptions(lr)); }

}  // namespace

TEST_CASE("Schedules match PyTorch for sixty steps, and states transfer in both directions") {
  Json states = Json::object();
  for (const auto& [name, make] : schedules()) run(name, false, &states[name]);
  const Json expected = golden("schedules", {{"states", states}});
  if (expected.is_null()) {
    WARN("no PyTorch for Python on this machine: nothing compared");
    return;
  }
  CHECK(expected["values"].size() == schedules().size());
  for (const auto& [name, make] : schedules()) {
    INFO(name);
    const Rows rows = run(name, false);
    CHECK(difference(rows, expected["values"].at(name)) < 1e-10);
    CHECK(difference(run(name, true), expected["hand"].at(name)) < 1e-10);
    const Json& rest = expected["values"][name];
    const Json after(std::vector<Json>(rest.begin() + kSavedAt + 1, rest.end()));
    INFO("Python's state: " << expected["states"][name].dump());
    CHECK(difference(go_on(name, expected["states"].at(name)), after) < 1e-10);
    CHECK(difference(go_on(name, states[name]), after) < 1e-10);
    CHECK(difference(Rows(rows.begin() + kSavedAt + 1, rows.end()), expected["continued"].at(name)) < 1e-10);
  }
}

TEST_CASE("A schedule resumes bit for bit from its own state") {
  for (const auto& [name, make] : schedules()) {
    INFO(name);
    Json saved;
    const Rows rows = run(name, false, &saved);
    CHECK(go_on(name, saved) == Rows(rows.begin() + kSavedAt + 1, rows.end()));
    auto optimizer = make_optimizer(name);
    const MadeSchedule schedule = make(*optimizer);
    schedule->load_state_dict(saved["state"]);
    CHECK(schedule->state_dict() == saved["state"]);
  }
}

TEST_CASE("A mismatched state is refused with its reason and changes nothing") {
  auto optimizer = make_optimizer("");
  StepLR schedule(*optimizer, {.step_size = 2});
  const Json before = schedule.state_dict();
  Json state = before;
  state["gamma"] = 0.9;
  state.erase("last_epoch");
  CHECK_THROWS_WITH(schedule.load_state_dict(state), Catch::Contains("last_epoch is missing"));
  state = before;
  state["gamma"] = "much";
  CHECK_THROWS_WITH(schedule.load_state_dict(state), Catch::Contains("gamma is no number"));
  state = before;
  state["base_lrs"] = {0.1};
  CHECK_THROWS_WITH(schedule.load_state_dict(state), Catch::Contains("1 elements for 2 parameter groups"));
  CHECK_THROWS_AS(schedule.load_state_dict(Json::array()), std::invalid_argument);
  CHECK(schedule.state_dict() == before);

  ChainedScheduler chained({StepLR(*optimizer, {.step_size = 2}), ExponentialLR(*optimizer, {.gamma = 0.9})});
  const Json whole = chained.state_dict();
  Json broken = whole;
  broken["_schedulers"][0]["gamma"] = 0.7;
  broken["_schedulers"][1].erase("gamma");
  CHECK_THROWS_WITH(chained.load_state_dict(broken), Catch::Contains("gamma is missing"));
  CHECK(chained.state_dict() == whole);
  CHECK_THROWS_WITH(chained.load_state_dict(before), Catch::Contains("_schedulers"));
}

TEST_CASE("Invalid options are refused by name") {
  auto o = sgd(0.1);
  CHECK_THROWS_WITH(StepLR(o, {}), Catch::Contains("step_size"));
  CHECK_THROWS_WITH(ConstantLR(o, {.factor = 0}), Catch::Contains("factor"));
  CHECK_THROWS_WITH(LinearLR(o, {.start_factor = 0}), Catch::Contains("start_factor"));
  CHECK_THROWS_WITH(LinearLR(o, {.end_factor = 2}), Catch::Contains("end_factor"));
  CHECK_THROWS_WITH(PolynomialLR(o, {.total_iters = 0}), Catch::Contains("total_iters"));
  CHECK_THROWS_WITH(CosineAnnealingLR(o, {}), Catch::Contains("T_max"));
  CHECK_THROWS_WITH(CosineAnnealingWarmRestarts(o, {}), Catch::Contains("T_0"));
  CHECK_THROWS_WITH(OneCycleLR(o, {.max_lr = 1}), Catch::Contains("total_steps"));
  CHECK_THROWS_WITH(OneCycleLR(o, {.max_lr = {1, 2}, .total_steps = 9}), Catch::Contains("2 values for 1"));
  CHECK_THROWS_WITH(OneCycleLR(o, {.max_lr = 1, .total_steps = 9, .anneal_strategy = "sine"}),
                    Catch::Contains("anneal_strategy"));
  CHECK_THROWS_WITH(CyclicLR(o, {.max_lr = 1, .mode = "square"}), Catch::Contains("mode"));
  CHECK_THROWS_WITH(ReduceLROnPlateau(o, {.factor = 1}), Catch::Contains("factor"));
  CHECK_THROWS_WITH(ReduceLROnPlateau(o, {.mode = "least"}), Catch::Contains("mode"));
  CHECK_THROWS_WITH(LambdaLR(o, LRFunction()), Catch::Contains("lr_lambda"));
  torch::optim::Adagrad adagrad(std::vector<torch::Tensor>{at::zeros({1})},
                                torch::optim::AdagradOptions(0.1));
  CHECK_THROWS_WITH(OneCycleLR(adagrad, {.max_lr = 1, .total_steps = 9}), Catch::Contains("cycle_momentum"));
  CHECK_NOTHROW(OneCycleLR(adagrad, {.max_lr = 1, .total_steps = 9, .cycle_momentum = false}));
}

TEST_CASE("Composite schedules refuse schedules that they cannot step") {
  auto o = sgd(0.1), other = sgd(0.1);
  CHECK_THROWS_WITH(SequentialLR(o, {ExponentialLR(o, {.gamma = 0.9}), ExponentialLR(o, {.gamma = 0.8})}, {}),
                    Catch::Contains("milestones"));
  CHECK_THROWS_WITH(
      SequentialLR(o, {ExponentialLR(o, {.gamma = 0.9}), ExponentialLR(other, {.gamma = 0.8})}, {3}),
      Catch::Contains("different optimizers"));
  CHECK_THROWS_WITH(SequentialLR(other, {ExponentialLR(o, {.gamma = 0.9})}, {}),
                    Catch::Contains("another optimizer"));
  CHECK_THROWS_WITH(ChainedScheduler({ExponentialLR(o, {.gamma = 0.9}), ReduceLROnPlateau(o)}),
                    Catch::Contains("by hand"));
  CHECK_THROWS_WITH(SequentialLR(o,
                                 {ExponentialLR(o, {.gamma = 0.9}),
                                  ChainedScheduler(Schedules{ExponentialLR(o, {.gamma = 0.9})})},
                                 {4}),
                    Catch::Contains("holds others"));
  ReduceLROnPlateau plateau(o);
  LRScheduler& base = plateau;
  CHECK_THROWS_WITH(base.step(), Catch::Contains("step(metric)"));
}

TEST_CASE("A warm-up rises to the learning rate and then starts the schedule") {
  auto o = sgd(0.1);
  SequentialLR schedule = warm_up(o, 4, CosineAnnealingLR(o, {.T_max = 10}), 0.2);
  Row seen{lr(o)};
  for (int step = 0; step < 14; ++step) schedule.step(), seen.push_back(lr(o));
  CHECK(seen[0] == Approx(0.02));
  CHECK(seen[2] == Approx(0.06));
  CHECK(seen[4] == Approx(0.1));
  CHECK(seen[5] == Approx(0.05 * (1 + std::cos(M_PI / 10))));
  CHECK(seen[14] == Approx(0).margin(1e-12));
  CHECK(schedule.get_last_lr() == Row{lr(o)});
}

TEST_CASE("A sequence begins at the first rate of a schedule with warm restarts") {
  auto o = sgd(0.1);
  SequentialLR schedule(
      o, {CosineAnnealingWarmRestarts(o, {.T_0 = 4, .eta_min = 0.02}), ConstantLR(o, {.factor = 0.5})}, {6});
  Row seen{lr(o)};
  for (int step = 0; step < 6; ++step) schedule.step(), seen.push_back(lr(o));
  // eta_min + (base - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2, with a restart at step 4.
  const double half = std::sqrt(0.5);
  const Row expected{0.1, 0.02 + 0.04 * (1 + half), 0.06, 0.02 + 0.04 * (1 - half),
                     0.1, 0.02 + 0.04 * (1 + half), 0.05};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(seen[i] == Approx(expected[i]));
}

TEST_CASE("The initial learning rate is kept while a schedule exists") {
  auto o = sgd(0.1);
  {
    const ConstantLR first(o, {.factor = 0.5});
    const LambdaLR second(o, [](std::int64_t) { return 3.0; });
    CHECK(lr(o) == Approx(0.3));
  }
  o.param_groups()[0].options().set_lr(0.01);
  const LambdaLR third(o, [](std::int64_t) { return 2.0; });
  CHECK(lr(o) == Approx(0.02));
}

TEST_CASE("A schedule refuses to step beyond its cycle or after a new parameter group") {
  auto o = sgd(0.1);
  OneCycleLR cycle(o, {.max_lr = 1, .total_steps = 3, .cycle_momentum = false});
  for (int step = 0; step < 3; ++step) cycle.step();
  CHECK_THROWS_WITH(cycle.step(), Catch::Contains("total_steps is 3"));
  auto p = sgd(0.1);
  ExponentialLR falling(p, {.gamma = 0.5});
  p.add_param_group(OptimizerParamGroup({at::zeros({1})}, std::make_unique<SGDOptions>(0.3)));
  CHECK_THROWS_WITH(falling.step(), Catch::Contains("add_param_group"));
  CHECK(lr(p) == 0.1);
}

TEST_CASE("A custom schedule needs only a formula") {
  class Halving : public LRScheduler {
   public:
    explicit Halving(Optimizer& optimizer) : LRScheduler(optimizer) { initial_step(); }

   protected:
    std::vector<double> get_lr() const override {
      return {base_lrs_[0] / static_cast<double>(1 + last_epoch_)};
    }
  };
  auto o = sgd(0.6);
  Halving schedule(o);
  schedule.step(), schedule.step();
  CHECK(lr(o) == Approx(0.2));
  CHECK(schedule.state_dict()["last_epoch"] == 2);
}

}  // namespace det
