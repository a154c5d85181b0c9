// The trial: ShiftViT with AdamW, warm-up and cosine annealing, and optional mixup and cutmix.
#include <det/det.h>

#include "data.h"
#include "mix.h"
#include "model.h"

class ShiftViTTrial : public det::Trial {
 public:
  explicit ShiftViTTrial(det::TrialContext& context)
      : context_(context),
        data_(load_data(context.get_data_config(), context.get_hparam<double>("random_erasing"))),
        model_(context.wrap_model(ShiftViT(options()))),
        optimizer_(context.wrap_optimizer(torch::optim::AdamW(
            model_->parameters(), torch::optim::AdamWOptions(context.get_hparam<double>("learning_rate"))
                                      .weight_decay(context.get_hparam<double>("weight_decay"))))) {
    const double batches =
        std::ceil(static_cast<double>(data_.train->size()) / context.get_global_batch_size());
    const auto in_batches = [&](const char* epochs) {
      return std::max<int64_t>(1, std::llround(context.get_hparam<double>(epochs) * batches));
    };
    const int64_t warm_up = in_batches("warm_up_epochs"), all = in_batches("epochs");
    context.wrap_lr_scheduler(
        det::warm_up(optimizer_, warm_up,
                     det::CosineAnnealingLR(optimizer_, {.T_max = std::max<int64_t>(1, all - warm_up)}),
                     1e-3),
        det::LRStepMode::kEveryBatch);
  }

  det::DataLoader build_training_data_loader() override {
    return {data_.train, {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }

  det::DataLoader build_validation_data_loader() override { return {data_.validation, {.batch_size = 200}}; }

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    auto [images, labels] = batch.unpack<2>();
    auto [mixed, targets] =
        mix(images, smooth(labels, data_.classes, context_.get_hparam<double>("label_smoothing")),
            {.mixup = context_.get_hparam<double>("mixup"), .cutmix = context_.get_hparam<double>("cutmix")});
    torch::Tensor loss = torch::cross_entropy_loss(model_(mixed).to(torch::kFloat), targets);
    context_.backward(loss);
    context_.step_optimizer(optimizer_, [](std::vector<torch::Tensor>& parameters) {
      det::clip_grad_norm(parameters, /*max_norm=*/5);
    });
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    auto [images, labels] = batch.unpack<2>();
    torch::Tensor scores = model_(images).to(torch::kFloat);
    return {{"validation_loss", torch::cross_entropy_loss(scores, labels)},
            {"accuracy", (scores.argmax(1) == labels).to(torch::kFloat).mean()}};
  }

 private:
  ShiftViTOptions options() const {
    return {.channels = data_.channels,
            .classes = data_.classes,
            .patch_size = context_.get_hparam<int64_t>("patch_size"),
            .embed_dim = context_.get_hparam<int64_t>("embed_dim"),
            .depths = context_.get_hparam<det::Json>("depths").get<std::vector<int64_t>>(),
            .mlp_ratio = context_.get_hparam<double>("mlp_ratio"),
            .n_div = context_.get_hparam<int64_t>("n_div"),
            .drop_path = context_.get_hparam<double>("drop_path"),
            .layer_scale = context_.get_hparam<double>("layer_scale")};
  }

  det::TrialContext& context_;
  Data data_;
  ShiftViT model_;
  torch::optim::AdamW& optimizer_;
};
