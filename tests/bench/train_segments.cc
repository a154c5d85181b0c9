// Trains in segments for segments.py: prints "ready", then trains a segment for every line on standard input
// and prints the seconds of one batch. This lets compared programs alternate.
//   bench_train_segments bare MODEL       a plain LibTorch loop
//   bench_train_segments trainer MODEL    det::Trainer with a report every 100 batches
//   bench_train_segments bf16 MODEL       the same with precision bf16
//   bench_train_segments exact MODEL      the same with `reproducibility: exact`, in one process or several
//   bench_train_segments nccl MODEL       the same with gradients through NCCL, on one GPU
//   bench_train_segments alone|shm|gloo|early-shm|late-gloo|… MODEL
// The last form is one process of several (RANK, WORLD_SIZE, …): without exchange, or over a transport during
// the backward pass ("early"), after it ("late"), or as det::run chooses.
#include <chrono>
#include <cstdio>
#include <iostream>

#include "common/base/files.h"
#include "harness/src/distributed/transport.h"
#include "harness/src/trainer/context_state.h"
#include "models.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kWarmUp = 5;

/// Waits for the next line and returns false at the end of input. Prints the seconds of the last segment.
class Turns {
 public:
  explicit Turns(int batches) : batches_(batches) {}
  bool next() {
    if (started_) {
      std::printf("%.9f\n", std::chrono::duration<double>(Clock::now() - start_).count() / batches_);
    } else {
      std::printf("ready\n");
    }
    std::fflush(stdout);
    started_ = true;
    std::string line;
    if (!std::getline(std::cin, line)) return false;
    start_ = Clock::now();
    return true;
  }

 private:
  int batches_;
  bool started_ = false;
  Clock::time_point start_;
};

/// Serializes reports as the cluster's client does on the training thread, then drops them.
class CountingClient final : public det::Client {
 public:
  void report_metrics(const std::string&, std::int64_t, const det::Json& metrics) override {
    bytes_ += det::dump_json(metrics).size();
  }
  void report_progress(double, std::int64_t) override {}
  void report_checkpoint(const det::CheckpointRecord&) override {}
  void report_invalid_hp() override {}
  bool should_preempt() const override { return false; }
  void acknowledge_preemption() override {}
  bool flush(std::chrono::seconds) override { return true; }

 private:
  std::size_t bytes_ = 0;
};

class BenchTrial : public det::Trial {
 public:
  BenchTrial(det::TrialContext& context, const bench::Model& model)
      : context_(context),
        bench_(model),
        turns_(model.segment),
        model_(context.wrap_model(model.net)),
        optimizer_(context.wrap_optimizer(torch::optim::SGD(model_->parameters(), bench::sgd()))) {}
  det::DataLoader build_training_data_loader() override {
    return {bench_.data, {.batch_size = bench_.batch_size, .shuffle = true}};
  }
  det::DataLoader build_validation_data_loader() override {
    return {det::TensorDataset(torch::zeros({1, 1})), {}};
  }
  det::Metrics train_batch(det::Batch& batch, int64_t, int64_t number) override {
    // Runs once a batch: `exact` calls this for each shard of it.
    if (std::exchange(newest_, number) != number && number >= kWarmUp &&
        (number - kWarmUp) % bench_.segment == 0 && !turns_.next())
      std::_Exit(0);
    torch::Tensor loss = torch::cross_entropy_loss(model_->forward(batch.data()), batch.target());
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}};
  }
  det::Metrics evaluate_batch(det::Batch&) override { return {{"validation_loss", 0}}; }

 private:
  det::TrialContext& context_;
  const bench::Model& bench_;
  Turns turns_;
  std::int64_t newest_ = -1;
  torch::nn::Sequential model_;
  torch::optim::SGD& optimizer_;
};

int with_trainer(const std::string& mode, const std::string& name) {
  const auto storage = det::TemporaryDirectory::create().value();
  det::InitOptions options{.checkpoint_dir = storage.path(), .enable_tensorboard_logging = false};
  if (mode == "bf16") options.exp_conf = det::Json::parse(R"({"optimizations": {"precision": "bf16"}})");
  if (mode == "exact") options.exp_conf = det::Json::parse(R"({"reproducibility": {"mode": "exact"}})");
  return det::run(
      [&](det::TrialContext& context) {
        bench::Model model = bench::make_model(name);
        det::ContextState& state = context.state();
        // The same records a step as without `exact`: the shards of a rank add up to a batch.
        if (state.gradients.exact)
          model.batch_size = model.batch_size * state.run.distributed->size() / state.gradients.exact->shards;
        state.run.client = std::make_unique<CountingClient>();
        if (mode == "alone") {
          state.run.communicator.reset();
        } else if (mode == "nccl") {
          state.run.communicator = det::make_nccl_communicator(*state.run.distributed, state.run.device,
                                                               det::make_cuda_queue(state.run.device));
        } else if (state.run.communicator != nullptr && mode != "exact") {
          state.run.communicator.reset();
          state.run.communicator = det::make_communicator(*state.run.distributed, state.run.device,
                                                          mode.substr(mode.find('-') + 1));
          if (mode.starts_with("late")) state.gradients.reduction.overlap = false;
          if (mode.starts_with("early")) state.gradients.reduction.overlap = true;
        }
        BenchTrial trial(context, model);
        det::Trainer(trial, context).fit({.max_length = det::Batches(1 << 30)});
      },
      options);
}

int by_hand(const std::string& name) {
  const char* threads = std::getenv("OMP_NUM_THREADS");
  torch::set_num_threads(threads != nullptr ? std::atoi(threads) : 2);
  const bench::Model bench = bench::make_model(name);
  torch::nn::Sequential model = bench.net;
  const torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), bench::sgd());
  const torch::Tensor order = torch::randperm(bench.data->size());
  const auto* shuffled = order.data_ptr<std::int64_t>();
  std::int64_t position = 0;
  double sum = 0;
  Turns turns(bench.segment);
  for (int i = 0;; ++i) {
    if (i >= kWarmUp && (i - kWarmUp) % bench.segment == 0 && !turns.next()) return sum == 0.5;
    if (position + bench.batch_size > order.numel()) position = 0;
    const det::Batch batch = det::to_device(
        bench.data->get_batch({shuffled + position, shuffled + position + bench.batch_size}), device);
    position += bench.batch_size;
    torch::Tensor loss = torch::cross_entropy_loss(model->forward(batch.data()), batch.target());
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    sum += loss.item<double>();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string mode = argv[1];
  return mode == "bare" ? by_hand(argv[2]) : with_trainer(mode, argv[2]);
}
