// What the trainer costs: its loop beside the same loop written by hand on LibTorch, alternating in one process on one
// thread, with a report every 100 batches. The median of the rounds' ratios.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "batch_stream.h"
#include "context_state.h"
#include "det/det.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kWarmUp = 5;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}
void print(const std::string& name, double value, const char* unit, const char* relation, double bound) {
  const bool ok = relation[0] == '<' ? value <= bound : value >= bound;
  std::printf("%s %.4g %s %s%.4g %s\n", name.c_str(), value, unit, relation, bound, ok ? "ok" : "short");
  std::fflush(stdout);
}

/// Writes reports as text, as the cluster's client does on the training thread, and forgets them.
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

torch::nn::Sequential make_mlp() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 32), nn::ReLU(), nn::Linear(32, 4));
}
torch::nn::Sequential make_cnn() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Conv2d(1, 32, 3), nn::ReLU(), nn::Conv2d(32, 64, 3), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Dropout(0.25), nn::Flatten(), nn::Linear(64 * 12 * 12, 128), nn::ReLU(),
                        nn::Dropout(0.5), nn::Linear(128, 10));
}

struct Case {
  std::string name;
  std::function<torch::nn::Sequential()> make_model;
  std::shared_ptr<det::Dataset> data;
  std::int64_t batch_size;
  int batches;  ///< of a segment
  double bound;
};

class BenchTrial : public det::Trial {
 public:
  BenchTrial(det::TrialContext& context, const Case& bench)
      : context_(context), bench_(bench), model_(context.wrap_model(bench.make_model())),
        optimizer_(context.wrap_optimizer(
            torch::optim::SGD(model_->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9)))) {}
  det::DataLoader build_training_data_loader() override {
    return {bench_.data, {.batch_size = bench_.batch_size, .shuffle = true}};
  }
  det::DataLoader build_validation_data_loader() override {
    return {det::TensorDataset(torch::zeros({1, 1})), {}};
  }
  det::Metrics train_batch(det::Batch& batch, int64_t, int64_t batch_idx) override {
    if (batch_idx == kWarmUp) start_ = Clock::now();
    if (batch_idx == kWarmUp + bench_.batches) per_batch_ = seconds_since(start_) / bench_.batches;
    torch::Tensor loss = torch::cross_entropy_loss(model_->forward(batch.data), batch.target);
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}};
  }
  det::Metrics evaluate_batch(det::Batch&) override { return {{"validation_loss", 0}}; }
  double per_batch() const { return per_batch_; }

 private:
  det::TrialContext& context_;
  const Case& bench_;
  torch::nn::Sequential model_;
  torch::optim::SGD& optimizer_;
  Clock::time_point start_;
  double per_batch_ = 0;
};

double with_trainer(det::TrialContext& context, const Case& bench) {
  context.state().models.clear();
  context.state().optimizers.clear();
  BenchTrial trial(context, bench);
  det::Trainer(trial, context).fit({.max_length = det::Batches(kWarmUp + bench.batches + 1)});
  return trial.per_batch();
}

double by_hand(const Case& bench) {
  torch::nn::Sequential model = bench.make_model();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  const std::int64_t records = bench.data->size();
  const torch::Tensor order = torch::randperm(records);
  const auto* shuffled = order.data_ptr<std::int64_t>();
  double sum = 0;
  std::int64_t position = 0;
  Clock::time_point start;
  for (int i = 0; i < kWarmUp + bench.batches; ++i) {
    if (i == kWarmUp) start = Clock::now();
    if (position + bench.batch_size > records) position = 0;
    const std::vector<std::int64_t> indices(shuffled + position, shuffled + position + bench.batch_size);
    position += bench.batch_size;
    const det::Batch batch = bench.data->get_batch(indices);
    torch::Tensor loss = torch::cross_entropy_loss(model->forward(batch.data), batch.target);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    sum += loss.item<double>();
    if (i % 100 == 99) {
      std::fprintf(stderr, "%s by hand: loss %.4f\n", bench.name.c_str(), sum / 100);
      sum = 0;
    }
  }
  return seconds_since(start) / bench.batches;
}

void compare(det::TrialContext& context, const Case& bench, int rounds) {
  std::vector<double> ratios, trainer_ms;
  for (int round = 0; round < rounds; ++round) {
    const bool trainer_first = round % 2 == 0;
    double trainer = trainer_first ? with_trainer(context, bench) : 0;
    const double hand = by_hand(bench);
    if (!trainer_first) trainer = with_trainer(context, bench);
    ratios.push_back(trainer / hand);
    trainer_ms.push_back(trainer * 1e3);
  }
  std::fprintf(stderr, "%s: %.4g ms a batch with the trainer\n", bench.name.c_str(), median(trainer_ms));
  print(bench.name + "_over_hand", median(ratios), "ratio", "<=", bench.bound);
}

void loader_speed(const det::Dataset& images, std::shared_ptr<det::Dataset> shared) {
  det::BatchStream stream(std::move(shared), {.records = images.size(), .batch_size = 64, .shuffle = true}, 0);
  std::vector<double> speeds;
  for (int round = 0; round < 9; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < 500; ++i) (void)stream.next();
    speeds.push_back(500 * 64 / seconds_since(start) / 1e6);
  }
  print("loader_mnist", median(speeds), "Mrecords/s", ">=", 2);
}

}  // namespace

int main() {
  ::setenv("OMP_NUM_THREADS", "1", 1);
  const auto storage = det::TemporaryDirectory::create().value();
  return det::run(
      [&](det::TrialContext& context) {
        context.state().client = std::make_unique<CountingClient>();
        const torch::Tensor pixels = torch::randint(0, 256, {20000, 28, 28}, torch::kByte);
        const auto images = std::make_shared<det::ImageDataset>(pixels, torch::randint(0, 10, {20000}, torch::kLong),
                                                                std::vector<double>{0.13}, std::vector<double>{0.31});
        const auto rows = std::make_shared<det::TensorDataset>(torch::randn({20000, 16}),
                                                               torch::randint(0, 4, {20000}, torch::kLong));
        compare(context, {"trainer_mlp", make_mlp, rows, 32, 3000, 1.05}, 15);
        compare(context, {"trainer_cnn", make_cnn, images, 64, 12, 1.02}, 11);
        loader_speed(*images, images);
      },
      {.checkpoint_dir = storage.path()});
}
