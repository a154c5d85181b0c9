// Program for crash_test: failing_trial STORAGE HOW. Trains a small network and fails in batch 3 in the way
// HOW, or earlier.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <limits>
#include <thread>

#include "fixture.h"
#include "harness/src/base/storage_full.h"

namespace {

volatile int zero = 0;

/// Without end, and no tail call, so that no compiler makes a loop of it.
[[gnu::noinline]] int recurse(int depth) {
  volatile char frame[1024];
  if (depth < zero) return 0;
  frame[0] = static_cast<char>(depth);
  return recurse(depth + 1) + frame[0];
}

class FailingTrial final : public det::testing::SmallTrial {
 public:
  FailingTrial(det::TrialContext& context, det::testing::Record& record, std::string how)
      : SmallTrial(context, record), how_(std::move(how)) {
    if (how_ == "hparam") (void)context.get_hparam<double>("learning_rat");
    if (how_ == "file") throw std::runtime_error("cannot open the data");
  }
  det::Metrics train_batch(det::Batch& batch, int64_t epoch, int64_t number) override {
    if (number == 3) fail(batch);
    return SmallTrial::train_batch(batch, epoch, number);
  }
  det::Metrics evaluate_batch(det::Batch& batch) override {
    if (how_ == "evaluate") throw std::runtime_error("no such class");
    return SmallTrial::evaluate_batch(batch);
  }

 private:
  void fail(det::Batch& batch) {
    if (how_ == "throw") throw std::runtime_error("no such class");
    if (how_ == "shape") (void)torch::mm(batch.data(), torch::ones({5, 2}));
    if (how_ == "segfault") *reinterpret_cast<volatile int*>(static_cast<std::intptr_t>(zero)) = 1;
    if (how_ == "abort") std::abort();
    if (how_ == "division") zero = 7 / zero;
    if (how_ == "overflow") zero = recurse(0);
    if (how_ == "memory") (void)std::vector<char>(std::numeric_limits<std::ptrdiff_t>::max());
    if (how_ == "exit") std::exit(3);
    if (how_ == "exit 0") std::exit(0);
    if (how_ == "thread") std::thread([] { throw std::runtime_error("no such class"); }).join();
    if (how_ == "full")
      det::saved_or_throw(det::fail(det::Code::kResourceExhausted, "no space"), "not saved");
    if (how_ == "fork") {
      if (::fork() == 0) std::exit(5);
    }
  }
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
        det::Trainer(trial, context).fit({.max_length = det::Batches(5), .sanity_batches = checked ? 2 : 0});
      },
      {.checkpoint_dir = argv[1]});
}
