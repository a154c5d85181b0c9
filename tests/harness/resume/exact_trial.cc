// Program for exact_test: exact_trial STORAGE [MODE [LENGTH]], as one of RANK/WORLD_SIZE processes. Under
// `reproducibility: exact` it trains a channels-last convolution and a network with dropout, batch
// statistics, a schedule, a learning rate set by hand, AdamW and a layer that is frozen at first. A second
// network reads the first one's output after its step and steps its schedule by hand; hooks add random
// numbers to it. Every rank prints its number of threads, and the SHA-256 of all weights, buffers, optimizer
// and schedule state, and of a metric that depends on the order of validation batches. In the mode `fast`,
// weights and the buffers of the last validation are hashed. In the mode `apart`, which is fast too, rank 1
// trains the second network only.
#include <iostream>

#include "common/crypto/digest.h"
#include "fixture.h"
#include "harness/src/checkpoint/pickle.h"
#include "harness/src/checkpoint/state.h"

namespace {

using det::Json;

/// Adds random numbers to a tensor before and after each epoch.
class Jitter final : public det::Callback {
 public:
  explicit Jitter(torch::Tensor tensor) : tensor_(std::move(tensor)) {}
  void on_training_epoch_start(int64_t) override { shake(); }
  void on_training_epoch_end(int64_t) override { shake(); }

 private:
  void shake() { tensor_.detach().add_(torch::rand(tensor_.sizes()), /*alpha=*/0.01); }

  torch::Tensor tensor_;
};

/// A sum that depends on the order of the values.
Json fold(const std::vector<Json>& values) {
  double sum = 0;
  for (const Json& value : values) sum = sum / 2 + value.get<double>();
  return sum;
}

class ExactTrial : public det::Trial {
 public:
  ExactTrial(det::TrialContext& context, bool is_apart)
      : context_(context),
        is_apart_(is_apart),
        filter_(context.wrap_model(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 4, {2, 1})))),
        model_(context.wrap_model(torch::nn::Sequential(torch::nn::Linear(8, 16), torch::nn::BatchNorm1d(16),
                                                        torch::nn::ReLU(), torch::nn::Dropout(0.3),
                                                        torch::nn::Linear(16, 3)))),
        optimizer_(context.wrap_optimizer(torch::optim::AdamW(parameters(), 0.01))),
        judge_(context.wrap_model(torch::nn::Linear(3, 1))),
        judge_optimizer_(context.wrap_optimizer(torch::optim::SGD(judge_->parameters(), 0.05))),
        judge_schedule_(context.wrap_lr_scheduler(det::ExponentialLR(judge_optimizer_, {.gamma = 0.97}),
                                                  det::LRStepMode::kManual)),
        seen_(judge_->register_buffer("seen", torch::zeros({1}, torch::kLong))),
        is_odd_(judge_->register_buffer("is_odd", torch::zeros({1}, torch::kBool))),
        order_(context.wrap_reducer(fold, "order", /*for_training=*/false)) {
    det::to_channels_last(*filter_);
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
  det::Callbacks build_callbacks() override {
    if (!context_.state().gradients.exact) return {};  // processes draw different numbers then
    return {{"jitter", std::make_shared<Jitter>(judge_->bias)}};
  }
  det::Metrics train_batch(det::Batch& batch, int64_t, int64_t batch_idx) override {
    model_->parameters().front().set_requires_grad(batch_idx >= 10);
    for (auto& group : optimizer_.param_groups()) group.options().set_lr(group.options().get_lr() * 0.999);
    const auto [data, target] = batch.unpack<2>();
    seen_.add_(target.sum());
    is_odd_.copy_(target.sum().remainder(2));
    torch::Tensor loss = torch::nll_loss(torch::log_softmax(output_of(data), 1), target);
    if (!is_apart_ || context_.distributed().is_chief()) {
      context_.backward(loss);
      context_.step_optimizer(optimizer_, [](auto& parameters) { det::clip_grad_norm(parameters, 0.1); });
    }
    const torch::Tensor again = judge_(output_of(data).detach());
    context_.backward(torch::mse_loss(again.squeeze(1), target.to(torch::kFloat)));
    context_.step_optimizer(judge_optimizer_);
    judge_schedule_.step();
    return {{"loss", loss}, {"judged", again.mean()}};
  }
  det::Metrics evaluate_batch(det::Batch& batch) override {
    const auto [data, target] = batch.unpack<2>();
    evaluated_.clear();
    for (const torch::Tensor& buffer : context_.state().wrapped.buffers())
      evaluated_.push_back(buffer.clone());
    const torch::Tensor loss = torch::nll_loss(torch::log_softmax(output_of(data), 1), target);
    order_.update(loss.item<double>());
    return {{"validation_loss", loss}};
  }
  /// Parameters of the convolution and the first network.
  std::vector<torch::Tensor> parameters() const {
    std::vector<torch::Tensor> all = filter_->parameters();
    for (const torch::Tensor& parameter : model_->parameters()) all.push_back(parameter);
    return all;
  }
  /// The buffers in the last evaluated batch.
  const std::vector<torch::Tensor>& evaluated() const { return evaluated_; }

 private:
  torch::Tensor output_of(const torch::Tensor& data) {
    const torch::Tensor images = data.reshape({-1, 2, 3, 1}).contiguous(at::MemoryFormat::ChannelsLast);
    return model_->forward(filter_(images).flatten(1));
  }

  det::TrialContext& context_;
  const bool is_apart_;
  torch::nn::Conv2d filter_;
  torch::nn::Sequential model_;
  torch::optim::AdamW& optimizer_;
  torch::nn::Linear judge_;
  torch::optim::SGD& judge_optimizer_;
  det::ExponentialLR& judge_schedule_;
  torch::Tensor seen_, is_odd_;
  det::SimpleReducer& order_;
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
  const std::string mode = argc > 2 ? argv[2] : "exact";
  const bool is_exact = mode == "exact";
  return det::run(
      [&](det::TrialContext& context) {
        ExactTrial trial(context, mode == "apart");
        const det::FitResult result =
            det::Trainer(trial, context)
                .fit({.max_length = det::Batches(argc > 3 ? std::stoi(argv[3]) : 60),
                      .checkpoint_period = det::Batches(2),
                      .validation_period = det::Batches(20),
                      .reporting_period = det::Batches(5),
                      .latest_checkpoint = "latest"});
        std::cout << "threads " << at::get_num_threads() << std::endl;
        det::Sha256 digest;
        if (is_exact) {
          add_bytes(digest,
                    det::collect_state(context.state().wrapped, {det::generator_bytes(context.device())}));
        } else {
          for (const torch::Tensor& parameter : trial.parameters()) add_bytes(digest, parameter);
          for (const torch::Tensor& buffer : trial.evaluated()) add_bytes(digest, buffer);
        }
        digest.update(det::dump_json(result.validation_metrics.at("order")));
        std::cout << "digest " << digest.hex() << std::endl;
      },
      {.exp_conf = Json{{"reproducibility", is_exact ? "exact" : "fast"}},
       .hparams = Json{{"global_batch_size", 8}},
       .checkpoint_dir = argv[1],
       .enable_tensorboard_logging = false});
}
