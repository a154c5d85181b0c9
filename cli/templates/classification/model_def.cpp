// A classifier of points in the plane. Replace points() by your data and Net by your model.
#include <det/det.h>

struct NetImpl : torch::nn::Module {
  explicit NetImpl(int64_t hidden)
      : fc1(register_module("fc1", torch::nn::Linear(2, hidden))),
        fc2(register_module("fc2", torch::nn::Linear(hidden, 2))) {}

  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }

  torch::nn::Linear fc1, fc2;
};
TORCH_MODULE(Net);

// `count` points, and whether each lies inside of a circle. A TensorDataset joins records by their first
// dimension: inputs [count, 2], labels [count].
det::TensorDataset points(int64_t count, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  torch::Tensor inputs = torch::rand({count, 2}, generator) * 2 - 1;
  torch::Tensor labels = inputs.square().sum(1).lt(0.5).to(torch::kLong);
  return det::TensorDataset(inputs, labels);
}

class MyTrial : public det::Trial {
 public:
  explicit MyTrial(det::TrialContext& context)
      : context_(context),
        model_(context.wrap_model(Net(context.get_hparam<int>("hidden")))),
        optimizer_(context.wrap_optimizer(
            torch::optim::Adam(model_->parameters(), context.get_hparam<double>("learning_rate")))) {}

  det::DataLoader build_training_data_loader() override {
    return {points(4096, 1), {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }

  det::DataLoader build_validation_data_loader() override { return {points(1024, 2), {.batch_size = 256}}; }

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor loss = torch::cross_entropy_loss(model_(batch.data()), batch.target());
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    torch::Tensor output = model_(batch.data());
    torch::Tensor correct = output.argmax(1) == batch.target();
    return {{"validation_loss", torch::cross_entropy_loss(output, batch.target())},
            {"accuracy", correct.to(torch::kFloat).mean()}};
  }

 private:
  det::TrialContext& context_;
  Net model_;
  torch::optim::Adam& optimizer_;
};
