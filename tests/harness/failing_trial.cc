// Program for crash_test: failing_trial STORAGE HOW. Trains a small network and fails in batch 3 in the way
// HOW, or earlier; with "stack" it writes a trace of batch 0 and does not fail. With "metric" the validation
// after batch 2 lacks the metric of the searcher.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <thread>

#include "fixture.h"
#include "harness/src/base/storage_full.h"

namespace {

using det::Json;

volatile int zero = 0;

/// Without end, and no tail call, so that no compiler makes a loop of it.
[[gnu::noinline]] int recurse(int depth) {
  volatile char frame[1024];
  if (depth < zero) return 0;
  frame[0] = static_cast<char>(depth);
  return recurse(depth + 1) + frame[0];
}

/// Crashes where it reads record 13, or throws.
struct BrokenDataset final : det::Dataset {
  explicit BrokenDataset(bool crashes) : crashes_(crashes) {}
  std::int64_t size() const override { return 18; }
  det::Batch get_batch(const std::vector<std::int64_t>& records) const override {
    for (const std::int64_t record : records) {
      if (record != 13) continue;
      if (!crashes_) throw std::runtime_error("cannot open 13.png");
      *reinterpret_cast<volatile int*>(static_cast<std::intptr_t>(zero)) = 1;
    }
    return data_.get_batch(records);
  }
  using Dataset::get_batch;

 private:
  bool crashes_;
  det::TensorDataset data_ = det::testing::small_data();
};

class FailingTrial final : public det::testing::SmallTrial {
 public:
  FailingTrial(det::TrialContext& context, det::testing::Record& record, std::string how)
      : SmallTrial(context, record), context_(context), how_(std::move(how)) {
    if (how_ == "hparam") (void)context.get_hparam<double>("learning_rat");
    if (how_ == "stack") {
      det::ProfilerOptions options;
      options.repeat = 1;
      options.with_stack = true;
      context.set_profiler(options);
    }
    if (how_ == "file") throw std::runtime_error("cannot open the data");
  }
  det::Metrics train_batch(det::Batch& batch, int64_t epoch, int64_t number) override {
    if (number == 3) fail(batch);
    if (number == 3 && how_ == "log") context_.backward(logarithm(model()->forward(batch.data())).mean());
    det::Metrics metrics = SmallTrial::train_batch(batch, epoch, number);
    if (number == 3 && how_ == "nan") return {{"loss", std::numeric_limits<double>::quiet_NaN()}};
    return metrics;
  }
  det::DataLoader build_training_data_loader() override {
    if (how_ != "read" && how_ != "missing") return SmallTrial::build_training_data_loader();
    return {BrokenDataset(how_ == "read"), {.batch_size = 4, .num_workers = 2}};
  }
  std::optional<det::Metrics> evaluate_full_dataset(const det::DataLoader&) override {
    if (how_ != "metric") return std::nullopt;
    return det::Metrics{{"accuracy", 0.5}};
  }
  det::Metrics evaluate_batch(det::Batch& batch) override {
    if (how_ == "evaluate") throw std::runtime_error("no such class");
    return SmallTrial::evaluate_batch(batch);
  }

 private:
  // Not inlined: reports name them.
  [[gnu::noinline]] torch::Tensor logarithm(const torch::Tensor& x) { return torch::log(x - 100); }
  [[gnu::noinline]] void fail(det::Batch& batch) {
    if (how_ == "throw") throw std::runtime_error("no such class");
    if (how_ == "shape") (void)torch::mm(batch.data(), torch::ones({5, 2}));
    if (how_ == "segfault") *reinterpret_cast<volatile int*>(static_cast<std::intptr_t>(zero)) = 1;
    if (how_ == "abort") std::abort();
    if (how_ == "hangup") (void)std::raise(SIGHUP);
    if (how_ == "division") zero = 7 / zero;
    if (how_ == "overflow") zero = recurse(0);
    if (how_ == "memory") (void)std::vector<char>(std::numeric_limits<std::ptrdiff_t>::max());
    if (how_ == "device") TORCH_CHECK(false, "CUDA error: an illegal memory access was encountered");
    if (how_ == "exit") std::exit(3);
    if (how_ == "exit 0") std::exit(0);
    if (how_ == "thread") std::thread([] { throw std::runtime_error("no such class"); }).join();
    if (how_ == "full")
      det::saved_or_throw(det::fail(det::Code::kResourceExhausted, "no space"), "not saved");
    if (how_ == "fork") {
      if (::fork() == 0) std::exit(5);
    }
  }
  det::TrialContext& context_;
  std::string how_;
};

}  // namespace

int main(int, char** argv) {
  return det::run(
      [&](det::TrialContext& context) {
        context.state().run.info.hparams = {{"global_batch_size", 4}, {"learning_rate", 0.01}};
        det::testing::Record record;
        FailingTrial trial(context, record, argv[2]);
        const bool checked = std::string(argv[2]) != "evaluate";
        det::Trainer(trial, context)
            .fit({.max_length = det::Batches(5),
                  .validation_period = det::Batches(2),
                  .sanity_batches = checked ? 2 : 0});
      },
      {.exp_conf =
           std::string(argv[2]) == "metric" ? Json{{"searcher", {{"metric", "acuracy"}}}} : Json::object(),
       .checkpoint_dir = argv[1]});
}
