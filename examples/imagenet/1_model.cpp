// Step 1: the model. Random data and a plain optimizer complete a trial that runs.
#include <det/det.h>

#include "model.h"

class ImageNetTrial : public det::Trial {
 public:
  explicit ImageNetTrial(det::TrialContext& context)
      : context_(context),
        model_(context.wrap_model(make_model(context))),
        optimizer_(context.wrap_optimizer(torch::optim::SGD(model_->parameters(), 0.1))) {}

  det::DataLoader build_training_data_loader() override { return {made_up(), {.batch_size = 8}}; }
  det::DataLoader build_validation_data_loader() override { return {made_up(), {.batch_size = 8}}; }

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor loss = torch::cross_entropy_loss(model_(batch.data()), batch.target());
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    return {{"val_loss", torch::cross_entropy_loss(model_(batch.data()), batch.target())}};
  }

 private:
  static det::TensorDataset made_up() { return {torch::randn({16, 3, 32, 32}), torch::arange(16) % 10}; }

  det::TrialContext& context_;
  det::models::Classifier model_;
  torch::optim::SGD& optimizer_;
};
