// Shared by the trainer tests: a recording client, a context without a program, and a small trial with
// overridable parts.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/files.h"
#include "det/det.h"
#include "harness/src/client/client.h"
#include "harness/src/trainer/context_state.h"
#include "tensors.h"

namespace det::testing {

/// A temporary directory, used as its path.
struct Folder {
  TemporaryDirectory directory = TemporaryDirectory::create().value();
  operator const std::string&() const { return directory.path(); }
};

/// The calls of a RecordingClient. Outlives the client.
struct Record {
  std::vector<std::string> events;        ///< "training 5", "progress 10", "acknowledged"
  std::vector<std::int64_t> checkpoints;  ///< separate: reported when they become durable, at any time
  std::vector<std::pair<std::string, Json>> metrics;  ///< "training 5" → values
  std::int64_t preempt_at = -1;  ///< number of batches after which preemption is requested
  bool preempt = false;
};

class RecordingClient final : public Client {
 public:
  explicit RecordingClient(Record& record) : record_(record) {}
  void report_metrics(const std::string& group, std::int64_t steps, const Json& metrics) override {
    record_.events.push_back(group + " " + std::to_string(steps));
    record_.metrics.emplace_back(record_.events.back(), metrics);
  }
  void report_progress(double, std::int64_t steps) override {
    record_.events.push_back("progress " + std::to_string(steps));
  }
  void report_checkpoint(const CheckpointRecord& checkpoint) override {
    record_.checkpoints.push_back(checkpoint.steps_completed);
  }
  void report_invalid_hp() override { record_.events.push_back("invalid_hp"); }
  bool should_preempt() const override { return record_.preempt; }
  void acknowledge_preemption() override { record_.events.push_back("acknowledged"); }
  bool flush(std::chrono::seconds) override { return true; }

 private:
  Record& record_;
};

inline std::unique_ptr<ContextState> make_state(Record& record, const std::string& storage,
                                                Json config = Json::object()) {
  auto state = std::make_unique<ContextState>();
  state->run.client = std::make_unique<RecordingClient>(record);
  state->run.info.checkpoint_dir = storage;
  state->run.info.seed = 7;
  state->run.info.experiment_config = std::move(config);
  state->run.info.hparams = {{"global_batch_size", 4}, {"learning_rate", 0.01}, {"name", "x"}};
  torch::manual_seed(7);
  return state;
}

/// 18 records with 6 numbers in 3 classes, always the same.
inline TensorDataset small_data() {
  torch::Tensor data = torch::arange(18 * 6, torch::kFloat).reshape({18, 6}).mul(0.7).sin();
  return TensorDataset(data, torch::arange(18).remainder(3));
}

/// Uses dropout, shuffled data and Adam, the state that a resume must restore.
class SmallTrial : public Trial {
 public:
  SmallTrial(TrialContext& context, Record& record)
      : context_(context),
        record_(record),
        model_(context.wrap_model(torch::nn::Sequential(torch::nn::Linear(6, 8), torch::nn::ReLU(),
                                                        torch::nn::Dropout(0.3), torch::nn::Linear(8, 3)))),
        optimizer_(context.wrap_optimizer(
            torch::optim::Adam(model_->parameters(), context.get_hparam<double>("learning_rate")))) {}

  DataLoader build_training_data_loader() override {
    return {small_data(), {.batch_size = 4, .shuffle = true}};
  }
  DataLoader build_validation_data_loader() override { return {small_data(), {.batch_size = 5}}; }
  Metrics train_batch(Batch& batch, int64_t, int64_t batch_idx) override {
    torch::Tensor loss =
        torch::nll_loss(torch::log_softmax(model_->forward(batch.data()), 1), batch.target());
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    if (batch_idx + 1 == record_.preempt_at) record_.preempt = true;
    return loss;
  }
  Metrics evaluate_batch(Batch& batch) override {
    return {{"validation_loss",
             torch::nll_loss(torch::log_softmax(model_->forward(batch.data()), 1), batch.target())}};
  }
  torch::nn::Sequential& model() { return model_; }
  torch::optim::Adam& optimizer() { return optimizer_; }

 private:
  TrialContext& context_;
  Record& record_;
  torch::nn::Sequential model_;
  torch::optim::Adam& optimizer_;
};

}  // namespace det::testing
