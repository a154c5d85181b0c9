// Program for exact_test: exact_trial STORAGE [fast], as one of RANK/WORLD_SIZE processes. Under
// `reproducibility: exact` it trains a network with dropout, batch statistics, a schedule, AdamW and a layer
// that is frozen at first. A second network reads the first one's output after its step and steps its
// schedule by hand. Every rank prints the SHA-256 of all weights, buffers, optimizer and schedule state. With
// `fast` (the other mode), weights and the buffers of the last validation are hashed.
#include <iostream>

#include "common/crypto/digest.h"
#include "fixture.h"
#include "harness/src/checkpoint/pickle.h"
#include "harness/src/checkpoint/state.h"

namespace {

using det::Json;

class ExactTrial : public det::Trial {
 public:
  explicit ExactTrial(det::TrialContext& context)
      : context_(context),
        model_(context.wrap_model(torch::nn::Sequential(torch::nn::Linear(6, 16), torch::nn::BatchNorm1d(16),
                                                        torch::nn::ReLU(), torch::nn::Dropout(0.3),
                                                        torch::nn::Linear(16, 3)))),
        optimizer_(context.wrap_optimizer(torch::optim::AdamW(model_->parameters(), 0.01))),
        judge_(context.wrap_model(torch::nn::Linear(3, 1))),
        judge_optimizer_(context.wrap_optimizer(torch::optim::SGD(judge_->parameters(), 0.05))),
        judge_schedule_(context.wrap_lr_scheduler(det::ExponentialLR(judge_optimizer_, {.gamma = 0.97}),
                                                  det::LRStepMode::kManual)) {
    model_->parameters().front().set_requires_grad(false);
    context.wrap_lr_scheduler(det::StepLR(optimizer_, {.step_size = 1, .gamma = 0.9}),
                              det::LRStepMode::kEveryEpoch);
  }
  det::DataLoader build_training_data_loader() override {
    torch::Tensor data = torch::arange(90 * 6, torch::kFloat).reshape({90, 6}).mul(0.7).sin();
    return {det::TensorDataset(data, torch::arange(90).remainder(3)),
            {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }
  det::DataLoader build_validation_data_loader() override {
    return {det::testing::small_data(), {.batch_size = 4}};
  }
  det::Metrics train_batch(det::Batch& batch, int64_t, int64_t batch_idx) override {
    model_->parameters().front().set_requires_grad(batch_idx >= 10);
    const auto [data, target] = batch.unpack<2>();
    torch::Tensor loss = torch::nll_loss(torch::log_softmax(model_->forward(data), 1), target);
    context_.backward(loss);
    context_.step_optimizer(optimizer_, [](auto& parameters) { det::clip_grad_norm(parameters, 1.0); });
    const torch::Tensor again = judge_(model_->forward(data).detach());
    context_.backward(torch::mse_loss(again.squeeze(1), target.to(torch::kFloat)));
    context_.step_optimizer(judge_optimizer_);
    judge_schedule_.step();
    return {{"loss", loss}, {"judged", again.mean()}};
  }
  det::Metrics evaluate_batch(det::Batch& batch) override {
    const auto [data, target] = batch.unpack<2>();
    evaluated_.clear();
    for (const torch::Tensor& buffer : model_->buffers()) evaluated_.push_back(buffer.clone());
    return {{"validation_loss", torch::nll_loss(torch::log_softmax(model_->forward(data), 1), target)}};
  }
  std::vector<torch::Tensor> parameters() const { return model_->parameters(); }
  /// The buffers in the last evaluated batch.
  const std::vector<torch::Tensor>& evaluated() const { return evaluated_; }

 private:
  det::TrialContext& context_;
  torch::nn::Sequential model_;
  torch::optim::AdamW& optimizer_;
  torch::nn::Linear judge_;
  torch::optim::SGD& judge_optimizer_;
  det::ExponentialLR& judge_schedule_;
  std::vector<torch::Tensor> evaluated_;
};

void add_bytes(det::Sha256& digest, const det::pickle::Value& value) {
  if (const auto* tensor = value.as<torch::Tensor>()) {
    const torch::Tensor plain = tensor->contiguous();
    digest.update({static_cast<const char*>(plain.data_ptr()), plain.nbytes()});
  } else if (const auto* list = value.as<det::pickle::List>()) {
    for (const auto& item : *list) add_bytes(digest, item);
  } else if (const auto* dict = value.as<det::pickle::Dict>()) {
    for (const auto& [name, item] : dict->items) {
      if (!name.starts_with("rng_state")) digest.update(name), add_bytes(digest, item);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool fast = argc > 2 && std::string(argv[2]) == "fast";
  return det::run(
      [&](det::TrialContext& context) {
        ExactTrial trial(context);
        det::Trainer(trial, context)
            .fit({.max_length = det::Batches(60),
                  .checkpoint_period = det::Batches(2),
                  .validation_period = det::Batches(20),
                  .reporting_period = det::Batches(5),
                  .latest_checkpoint = "latest"});
        det::Sha256 digest;
        if (fast) {
          for (const torch::Tensor& parameter : trial.parameters()) add_bytes(digest, parameter);
          for (const torch::Tensor& buffer : trial.evaluated()) add_bytes(digest, buffer);
        } else {
          add_bytes(digest,
                    det::collect_state(context.state().wrapped, {det::generator_bytes(context.device())}));
        }
        std::cout << "digest " << digest.hex() << std::endl;
      },
      {.exp_conf = Json{{"reproducibility", fast ? "fast" : "exact"}},
       .hparams = Json{{"global_batch_size", 8}},
       .checkpoint_dir = argv[1],
       .enable_tensorboard_logging = false});
}
