// The trial: a CNN on MNIST.
#include <det/det.h>

#include "data.h"
#include "model.h"

class MNistTrial : public det::Trial {
 public:
  explicit MNistTrial(det::TrialContext& context)
      : context_(context),
        data_(find_data(context.get_data_config())),
        model_(context.wrap_model(
            Net(context.get_hparam<int>("n_filters1"), context.get_hparam<int>("n_filters2"),
                context.get_hparam<double>("dropout1"), context.get_hparam<double>("dropout2")))),
        optimizer_(context.wrap_optimizer(
            torch::optim::Adam(model_->parameters(), context.get_hparam<double>("learning_rate")))) {}

  det::DataLoader build_training_data_loader() override {
    return {load_digits(data_, "train"), {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }

  det::DataLoader build_validation_data_loader() override {
    return {load_digits(data_, "t10k"), {.batch_size = 500}};
  }

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor loss = torch::nll_loss(model_(batch.data()), batch.target());
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    torch::Tensor output = model_(batch.data());
    torch::Tensor correct = output.argmax(1) == batch.target();
    // A few digits of the last batch with mistakes, for the panel "Media".
    torch::Tensor wrong = batch.data().index({correct.logical_not()});
    if (wrong.size(0) > 0) context_.report_image("misclassified", wrong.slice(0, 0, 16), {.stretch = true});
    return {{"validation_loss", torch::nll_loss(output, batch.target())},
            {"accuracy", correct.to(torch::kFloat).mean()}};
  }

 private:
  det::TrialContext& context_;
  Data data_;
  Net model_;
  torch::optim::Adam& optimizer_;
};
