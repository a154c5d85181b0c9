// The trial: a language model of bytes, trained with AdamW, linear warm-up and cosine annealing. The last
// tenth of the text is the validation set.
#include <det/det.h>

#include "data.h"
#include "model.h"

class GptTrial : public det::Trial {
 public:
  explicit GptTrial(det::TrialContext& context)
      : context_(context),
        length_(context.get_hparam<int64_t>("context")),
        model_(context.wrap_model(
            Gpt(context.get_hparam<int64_t>("layers"), context.get_hparam<int64_t>("width"),
                context.get_hparam<int64_t>("heads"), length_, context.get_hparam<double>("dropout")))),
        optimizer_(context.wrap_optimizer(torch::optim::AdamW(
            model_->parameters(), torch::optim::AdamWOptions(context.get_hparam<double>("learning_rate"))
                                      .betas({0.9, 0.95})
                                      .weight_decay(context.get_hparam<double>("weight_decay"))))) {
    const int64_t batches = context.get_hparam<int64_t>("batches"),
                  warm_up = std::max<int64_t>(1, batches / 20);
    context.wrap_lr_scheduler(
        det::warm_up(optimizer_, warm_up, det::CosineAnnealingLR(optimizer_, {.T_max = batches - warm_up})),
        det::LRStepMode::kEveryBatch);
  }

  det::DataLoader build_training_data_loader() override {
    const torch::Tensor text = read_text(context_.get_data_config().at("file"));
    return {Windows(text.narrow(0, 0, text.numel() * 9 / 10), length_, /*stride=*/1),
            {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }

  det::DataLoader build_validation_data_loader() override {
    const torch::Tensor text = read_text(context_.get_data_config().at("file"));
    const int64_t begin = text.numel() * 9 / 10;
    return {Windows(text.narrow(0, begin, text.numel() - begin), length_, /*stride=*/length_),
            {.batch_size = 16}};
  }

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor loss = loss_of_next_byte(batch);
    context_.backward(loss);
    context_.step_optimizer(optimizer_, [](std::vector<torch::Tensor>& parameters) {
      det::clip_grad_norm(parameters, /*max_norm=*/1);
    });
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    return {{"validation_loss", loss_of_next_byte(batch)}};
  }

  Gpt& model() { return model_; }

 private:
  /// Cross entropy in nats per byte.
  torch::Tensor loss_of_next_byte(const det::Batch& batch) {
    auto [bytes, next] = batch.unpack<2>();
    return torch::cross_entropy_loss(model_(bytes).to(torch::kFloat).flatten(0, 1), next.flatten());
  }

  det::TrialContext& context_;
  int64_t length_;
  Gpt model_;
  torch::optim::AdamW& optimizer_;
};
