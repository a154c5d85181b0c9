// Program for resume_test: resume_trial STORAGE REPORTS [full]. Trains a small network with dropout, shuffled
// data and Adam, and saves often. Appends each report to a file as a JSON line, so that a kill loses no
// reported value. Prints the SHA-256 of all parameters and optimizer state at the end. With `full` it trains
// one batch, and its validation reports whether the next batch of a full dataset updates the heartbeat file.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "common/base/wait.h"
#include "common/crypto/digest.h"
#include "fixture.h"
#include "harness/src/checkpoint/pickle.h"
#include "harness/src/checkpoint/state.h"

namespace {

using det::Json;

class FileClient final : public det::Client {
 public:
  explicit FileClient(const char* path)
      : file_(::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}
  void report_metrics(const std::string& group, std::int64_t steps, const Json& metrics) override {
    const std::string line =
        det::dump_json({{"key", group + " " + std::to_string(steps)}, {"values", metrics}}) + "\n";
    if (::write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  }
  void report_progress(double, std::int64_t) override {}
  void report_checkpoint(const det::CheckpointRecord&) override {}
  void report_invalid_hp() override {}
  bool should_preempt() const override { return false; }
  void acknowledge_preemption() override {}
  bool flush(std::chrono::seconds) override { return true; }

 private:
  det::UniqueFd file_;
};

void add_bytes(det::Sha256& digest, const det::pickle::Value& value) {
  if (const auto* tensor = value.as<torch::Tensor>()) {
    const torch::Tensor plain = tensor->contiguous();
    digest.update({static_cast<const char*>(plain.data_ptr()), plain.nbytes()});
  } else if (const auto* list = value.as<det::pickle::List>()) {
    for (const auto& item : *list) add_bytes(digest, item);
  } else if (const auto* dict = value.as<det::pickle::Dict>()) {
    for (const auto& [name, item] : dict->items) digest.update(name), add_bytes(digest, item);
  }
}

class FullDatasetTrial final : public det::testing::SmallTrial {
 public:
  FullDatasetTrial(det::TrialContext& context, det::testing::Record& record)
      : SmallTrial(context, record), context_(context) {}
  std::optional<det::Metrics> evaluate_full_dataset(const det::DataLoader& loader) override {
    const std::string heartbeat = std::string(std::getenv("DET_RUN_DIR")) + "/heartbeat";
    auto batches = context_.iterate(loader);
    (void)::unlink(heartbeat.c_str());
    // The file is touched at most once a second.
    const auto touches = [&] {
      (void)batches.next();
      return det::path_exists(heartbeat);
    };
    return det::Metrics{{"updated", det::wait_until(touches, std::chrono::seconds(5)) ? 1.0 : 0.0}};
  }

 private:
  det::TrialContext& context_;
};

}  // namespace

int main(int argc, char** argv) {
  return det::run(
      [&](det::TrialContext& context) {
        context.state().run.client = std::make_unique<FileClient>(argv[2]);
        context.state().run.info.hparams = {{"global_batch_size", 4}, {"learning_rate", 0.01}};
        det::testing::Record record;
        if (argc > 3) {
          FullDatasetTrial full(context, record);
          det::Trainer(full, context).fit({.max_length = det::Batches(1)});
          return;
        }
        det::testing::SmallTrial trial(context, record);
        det::Trainer(trial, context)
            .fit({.max_length = det::Batches(300),
                  .checkpoint_period = det::Batches(7),
                  .validation_period = det::Batches(50),
                  .reporting_period = det::Batches(10),
                  .latest_checkpoint = "latest"});
        det::Sha256 digest;
        add_bytes(digest,
                  det::collect_state(context.state().wrapped, {det::generator_bytes(context.device())}));
        std::cout << digest.hex() << std::endl;
      },
      {.checkpoint_dir = argv[1]});
}
