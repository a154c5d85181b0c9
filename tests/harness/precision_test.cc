// Mixed precision and optimizer steps within a batch.
#include "fixture.h"

// Catch2 must follow LibTorch: both define CHECK.
#include <catch2/catch.hpp>

namespace det {
namespace {

using testing::Folder;
using testing::kCpu;
using testing::make_state;
using testing::Record;
using testing::SmallTrial;

/// A weight [rows, columns] of a context in mixed precision.
struct MixedWeight {
  MixedWeight(std::int64_t rows, std::int64_t columns)
      : line(context.wrap_model(torch::nn::Linear(torch::nn::LinearOptions(columns, rows).bias(false)))) {
    context.use_amp({.dtype = torch::kBFloat16});
  }
  torch::Tensor product(const torch::Tensor& x) const { return torch::matmul(x, line->weight); }

  Folder storage;
  Record record;
  TrialContext context{make_state(record, storage)};
  torch::nn::Linear line;
};

TEST_CASE("a forward pass after a step in the same batch has the new weights") {
  MixedWeight mixed(2, 1);
  auto& sgd = mixed.context.wrap_optimizer(torch::optim::SGD(mixed.line->parameters(), 1.0));
  torch::nn::init::constant_(mixed.line->weight, 1);
  const torch::Tensor data = torch::ones({1, 2});
  const Autocast autocast(kCpu, torch::kBFloat16);
  const torch::Tensor loss = mixed.product(data).sum();
  CHECK(loss.item<double>() == 2);
  mixed.context.backward(loss);
  mixed.context.step_optimizer(sgd);
  const torch::Tensor output = mixed.product(data);
  CHECK(output.scalar_type() == torch::kBFloat16);
  CHECK(output.item<double>() == 0);
}

TEST_CASE("each evaluation of a closure has the current weights, in mixed precision") {
  MixedWeight mixed(3, 1);
  auto& lbfgs = mixed.context.wrap_optimizer(
      torch::optim::LBFGS(mixed.line->parameters(), torch::optim::LBFGSOptions(1)));
  const torch::Tensor data = torch::arange(30, torch::kFloat).reshape({10, 3}).sin();
  const torch::Tensor target = data.sum(1, true) * 3;
  const Autocast autocast(kCpu, torch::kBFloat16);
  int evaluations = 0, current = 0;
  mixed.context.step_optimizer(lbfgs, [&] {
    const torch::Tensor output = mixed.product(data);
    // A copy of the weights is not in the cache of casts.
    const torch::Tensor expected = torch::matmul(data, mixed.line->weight.detach().clone());
    if (output.scalar_type() == torch::kBFloat16 && torch::equal(output.detach(), expected)) ++current;
    ++evaluations;
    torch::Tensor loss = torch::mse_loss(output.to(torch::kFloat), target);
    mixed.context.backward(loss);
    return loss;
  });
  CHECK(evaluations > 1);
  CHECK(current == evaluations);
}

TEST_CASE("the matrix products of an optimizer are in full precision") {
  const auto stepped = [](bool is_mixed) {
    MixedWeight mixed(4, 4);
    auto& muon = mixed.context.wrap_optimizer(optim::Muon(mixed.line->parameters(), optim::MuonOptions(0.1)));
    mixed.line->weight.mutable_grad() = torch::arange(16, torch::kFloat).reshape({4, 4}).sin();
    const Autocast autocast(kCpu, torch::kBFloat16, is_mixed);
    mixed.context.step_optimizer(muon);
    return mixed.line->weight.detach().clone();
  };
  CHECK(torch::equal(stepped(true), stepped(false)));
}

TEST_CASE("with a loss scaler a batch may step no optimizer") {
  struct Trial : SmallTrial {
    using SmallTrial::SmallTrial;
    Metrics train_batch(Batch& batch, int64_t epoch, int64_t number) override {
      return number % 2 == 0 ? SmallTrial::train_batch(batch, epoch, number) : Metrics(torch::ones({}));
    }
  };
  Folder storage;
  Record record;
  TrialContext context(make_state(record, storage));
  const GradScaler& scaler = context.wrap_scaler(GradScaler({.init_scale = 4}));
  Trial trial(context, record);
  CHECK(Trainer(trial, context).fit({.max_length = Batches(4)}).batches_trained == 4);
  CHECK(scaler.state_dict()["_growth_tracker"] == 2);
}

}  // namespace
}  // namespace det
