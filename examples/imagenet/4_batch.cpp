// Step 4: the body of the training loop, and the script's metrics. The trainer averages them.
#include <det/det.h>

#include "data.h"
#include "model.h"

torch::Tensor accuracy(const torch::Tensor& output, const torch::Tensor& target, int64_t k) {
  const torch::Tensor best = std::get<1>(output.topk(k, /*dim=*/1));
  return best.eq(target.unsqueeze(1)).any(1).to(torch::kFloat).mean();
}

class ImageNetTrial : public det::Trial {
 public:
  explicit ImageNetTrial(det::TrialContext& context)
      : context_(context),
        model_(context.wrap_model(make_model(context))),
        optimizer_(context.wrap_optimizer(torch::optim::SGD(
            model_->parameters(), torch::optim::SGDOptions(context.get_hparam<double>("lr"))
                                      .momentum(context.get_hparam<double>("momentum"))
                                      .weight_decay(context.get_hparam<double>("weight_decay"))))) {}

  det::DataLoader build_training_data_loader() override {
    return {load_images(context_, /*train=*/true),
            {.batch_size = context_.get_per_slot_batch_size(),
             .shuffle = context_.get_hparams().value("shuffle", true),
             .num_workers = context_.get_hparam<int64_t>("workers")}};
  }

  det::DataLoader build_validation_data_loader() override {
    return {load_images(context_, /*train=*/false), {.batch_size = 100}};
  }

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    auto [images, target] = batch.unpack<2>();
    torch::Tensor output = model_(images);
    torch::Tensor loss = torch::cross_entropy_loss(output, target);
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}, {"top1", accuracy(output, target, 1)}, {"top5", accuracy(output, target, 5)}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    auto [images, target] = batch.unpack<2>();
    torch::Tensor output = model_(images);
    return {{"val_loss", torch::cross_entropy_loss(output, target)},
            {"val_top1", accuracy(output, target, 1)},
            {"val_top5", accuracy(output, target, 5)}};
  }

 private:
  det::TrialContext& context_;
  det::models::Classifier model_;
  torch::optim::SGD& optimizer_;
};
