// The script of main.cpp as a trial: the network, the data, and the work per batch.
#include <det/det.h>

#include <string>

#include "model.h"

class ImagesTrial : public det::Trial {
 public:
  explicit ImagesTrial(det::TrialContext& context)
      : context_(context),
        data_dir_(context.get_data_config().at("dir").get<std::string>()),
        model_(context.wrap_model(Net(context.get_hparam<double>("dropout")))),
        optimizer_(context.wrap_optimizer(torch::optim::SGD(
            model_->parameters(), torch::optim::SGDOptions(context.get_hparam<double>("lr"))
                                      .momentum(context.get_hparam<double>("momentum"))
                                      .weight_decay(context.get_hparam<double>("weight_decay"))))) {
    context.wrap_lr_scheduler(det::StepLR(optimizer_, {.step_size = context.get_hparam<int64_t>("lr_step"),
                                                       .gamma = context.get_hparam<double>("gamma")}),
                              det::LRStepMode::kEveryEpoch);
  }

  det::DataLoader build_training_data_loader() override {
    return {images("train"), {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }

  det::DataLoader build_validation_data_loader() override { return {images("t10k"), {.batch_size = 500}}; }

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    auto [images, labels] = batch.unpack<2>();
    torch::Tensor output = model_(images);
    torch::Tensor loss = torch::nn::functional::cross_entropy(output, labels);
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    auto [images, labels] = batch.unpack<2>();
    torch::Tensor output = model_(images);
    torch::Tensor loss = torch::nn::functional::cross_entropy(output, labels);
    torch::Tensor correct = output.argmax(1) == labels;
    return {{"validation_loss", loss}, {"accuracy", correct.to(torch::kFloat).mean()}};
  }

 protected:
  det::ImageDataset images(const std::string& set) const {
    const std::string prefix = data_dir_ + "/" + set;
    return det::ImageDataset(det::read_idx(prefix + "-images-idx3-ubyte"),
                             det::read_idx(prefix + "-labels-idx1-ubyte"), /*mean=*/{0.5}, /*stddev=*/{0.5});
  }

  det::TrialContext& context_;
  std::string data_dir_;
  Net model_;
  torch::optim::SGD& optimizer_;
};
