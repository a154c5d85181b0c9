// The skeleton of the guides' examples. It trains on made-up data for users to replace.
#pragma once

#include <det/det.h>

/// Points, and on which side of a plane they lie.
inline det::TensorDataset made_up_data() {
  torch::Tensor data = torch::arange(64 * 4, torch::kFloat).sin().reshape({64, 4});
  torch::Tensor labels = data.sum(1).gt(0).to(torch::kLong);
  return det::TensorDataset(data, labels);
}

class MyTrial : public det::Trial {
 public:
  explicit MyTrial(det::TrialContext& context)
      : context_(context),
        model_(context.wrap_model(torch::nn::Linear(4, 2))),
        optimizer_(context.wrap_optimizer(torch::optim::SGD(model_->parameters(), 0.1))) {}

  det::DataLoader build_training_data_loader() override {
    return {made_up_data(), {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }

  det::DataLoader build_validation_data_loader() override { return {made_up_data(), {.batch_size = 16}}; }

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor loss = torch::nn::functional::cross_entropy(model_(batch.data()), batch.target());
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    return {{"validation_loss", torch::nn::functional::cross_entropy(model_(batch.data()), batch.target())}};
  }

 protected:
  det::TrialContext& context_;
  torch::nn::Linear model_;
  torch::optim::SGD& optimizer_;
};
