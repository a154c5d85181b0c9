// A trial in the managed style: it defines model, optimizer and loss. The library runs the optimizer step.
#include <det/det.h>

#include "data.h"

torch::Tensor error_rate(const torch::Tensor& output, const torch::Tensor& labels) {
  return (output.argmax(1) != labels).to(torch::kFloat).mean();
}

class MNistTrial : public det::ManagedTrial<torch::nn::Sequential> {
 public:
  explicit MNistTrial(det::TrialContext& context) : ManagedTrial(context), data_(find_mnist(context)) {}

  torch::nn::Sequential build_model() override {
    namespace nn = torch::nn;
    const int64_t filters1 = context_.get_hparam<int64_t>("n_filters1");
    const int64_t filters2 = context_.get_hparam<int64_t>("n_filters2");
    nn::Sequential model(nn::Conv2d(1, filters1, 5), nn::MaxPool2d(2), nn::ReLU(),  // 28 × 28 → 12 × 12
                         nn::Conv2d(filters1, filters2, 5), nn::MaxPool2d(2), nn::ReLU(),  // → 4 × 4
                         nn::Flatten(), nn::Linear(16 * filters2, 50), nn::ReLU(),
                         nn::Dropout(context_.get_hparam<double>("dropout")), nn::Linear(50, 10),
                         nn::LogSoftmax(1));
    det::reset_parameters(*model);
    return model;
  }

  std::unique_ptr<torch::optim::Optimizer> optimizer(torch::nn::Sequential& model) override {
    return std::make_unique<torch::optim::SGD>(
        model->parameters(),
        torch::optim::SGDOptions(context_.get_hparam<double>("learning_rate")).momentum(0.9));
  }

  det::DataLoader build_training_data_loader() override {
    return {load_digits(data_, "train"), {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }

  det::DataLoader build_validation_data_loader() override {
    return {load_digits(data_, "t10k"), {.batch_size = 500}};
  }

  det::Metrics train_batch(det::Batch& batch, torch::nn::Sequential& model, int64_t, int64_t) override {
    auto [images, labels] = batch.unpack<2>();
    torch::Tensor output = model->forward(images);
    return {{"loss", torch::nll_loss(output, labels)}, {"train_error", error_rate(output, labels)}};
  }

  det::Metrics evaluate_batch(det::Batch& batch, torch::nn::Sequential& model) override {
    auto [images, labels] = batch.unpack<2>();
    return {{"validation_error", error_rate(model->forward(images), labels)}};
  }

 private:
  std::string data_;
};
