// Shared by the checkpoint tests: a small trial without a trainer, and helpers that damage files.
#pragma once

#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <torch/nn/functional.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "common/base/files.h"
#include "harness/src/checkpoint/checkpoint.h"
#include "harness/src/checkpoint/checkpoint_saver.h"
#include "harness/src/checkpoint/state.h"

namespace det::testing {

/// A schedule that halves the learning rate.
class Halving final : public LRScheduler {
 public:
  explicit Halving(torch::optim::Optimizer& optimizer) : LRScheduler(optimizer) {
    base_lrs_ = {0.5};
    step();
  }

 protected:
  std::vector<double> get_lr() const override {
    return {base_lrs_[0] / static_cast<double>(1 << last_epoch_)};
  }
};
class Counting : public Callback {
 public:
  Json state_dict() const override { return {{"count", count}, {"best", -0.1}, {"names", {"a", "b"}}}; }
  void load_state_dict(const Json& state) override { count = state.at("count").get<int>(); }
  int count = 0;
};

struct Fixture {
  explicit Fixture(std::uint64_t seed, const std::string& storage = "") {
    torch::manual_seed(seed);
    model =
        torch::nn::Sequential(torch::nn::Linear(3, 8), torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 2));
    wrapped.models.push_back(model.ptr());
    run.info.checkpoint_dir = storage;
    run.info.trial_id = 5;
    run.info.seed = 7;
    run.info.hparams = {{"global_batch_size", 4}};
    run.info.experiment_config = {{"name", "x"}, {"data", {{"path", "/d"}}}};
  }
  template <typename Optimizer>
  Optimizer& optimize(Optimizer optimizer) {
    auto owned = std::make_unique<Optimizer>(std::move(optimizer));
    Optimizer& reference = *owned;
    wrapped.optimizers.push_back(std::move(owned));
    return reference;
  }
  /// Adds Adam and one of every other kind of state that a checkpoint holds.
  void add_all() {
    auto& adam = optimize(torch::optim::Adam(model->parameters(), torch::optim::AdamOptions(0.01)));
    wrapped.lr_schedulers.push_back({std::make_unique<Halving>(adam)});
    wrapped.scaler = std::make_unique<GradScaler>(GradScalerOptions{.init_scale = 1024});
    wrapped.callbacks.emplace_back("counting", std::make_shared<Counting>());
  }
  /// Trains on random data drawn from the generator, so a wrong generator state shows.
  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      for (auto& optimizer : wrapped.optimizers) {
        const torch::Tensor input = at::randn({4, 3}), target = at::randn({4, 2});
        optimizer->step([&] {
          optimizer->zero_grad();
          torch::Tensor loss = at::mse_loss(model->forward(input), target);
          loss.backward();
          return loss;
        });
      }
    }
  }
  pickle::Value state() { return collect_state(wrapped, {generator_bytes(run.device)}); }
  /// The complete checkpoint state as bytes.
  std::string digest();

  RunInfo run;
  WrappedObjects wrapped;
  torch::nn::Sequential model{nullptr};
};

/// The bytes of the file that stores this value.
inline std::string file_bytes(const pickle::Value& value) {
  auto directory = TemporaryDirectory::create().value();
  pickle::save(value, directory.path() + "/x");
  return read_file(directory.path() + "/x").value();
}
inline std::string Fixture::digest() { return file_bytes(state()); }

inline TrialState at_batch(std::int64_t batch) {
  TrialState state;
  state.progress.steps_completed = batch;
  state.window = {{"loss", 0.25}};
  return state;
}

/// Saves, waits, and returns the checkpoint's directory.
inline std::string save_whole(const RunInfo& run, const WrappedObjects& wrapped, std::int64_t batch) {
  CheckpointSaver saver(run, wrapped);
  const std::string uuid = saver.save(at_batch(batch));
  saver.wait();
  return run.info.checkpoint_dir + "/" + saver.finished().at(0).uuid;
}

}  // namespace det::testing
