// Program for zero_test: zero_trial STORAGE ZERO OPTIMIZER BATCHES WIDTH [EVERY [replace]], as one of
// RANK/WORLD_SIZE processes. Trains a network, one layer of which is frozen at first, from the latest
// checkpoint of STORAGE; saves every 4 batches. With `replace`, its parameters get other memory on the way.
// Every rank prints the SHA-256 of all weights, the bytes of its optimizer state, and
// the microseconds of a batch.
#include <iostream>

#include "common/base/clock.h"
#include "common/crypto/digest.h"
#include "fixture.h"
#include "harness/src/checkpoint/state.h"

namespace {

using det::Json;
namespace lib = torch::optim;

std::unique_ptr<lib::Optimizer> make_optimizer(const std::string& name,
                                               std::vector<torch::Tensor> parameters) {
  const auto made = [&]<typename Optimizer, typename Options>(Options options) {
    const std::vector<torch::Tensor> last(parameters.end() - 2, parameters.end());
    auto optimizer = std::make_unique<Optimizer>(
        std::vector<torch::Tensor>(parameters.begin(), parameters.end() - 2), options);
    // A second group with another learning rate.
    options.set_lr(options.get_lr() / 2);
    optimizer->add_param_group(lib::OptimizerParamGroup(last, std::make_unique<Options>(options)));
    return std::unique_ptr<lib::Optimizer>(std::move(optimizer));
  };
  if (name == "SGD") return made.operator()<lib::SGD>(lib::SGDOptions(0.05).momentum(0.9).nesterov(true));
  if (name == "Adam") return made.operator()<lib::Adam>(lib::AdamOptions(0.01).amsgrad(true));
  if (name == "AdamW") return made.operator()<lib::AdamW>(lib::AdamWOptions(0.01).weight_decay(0.1));
  if (name == "RMSprop") return made.operator()<lib::RMSprop>(lib::RMSpropOptions(0.01).centered(true));
  if (name == "Adadelta") return made.operator()<det::optim::Adadelta>(det::optim::AdadeltaOptions());
  if (name == "Adamax") return made.operator()<det::optim::Adamax>(det::optim::AdamaxOptions(0.02));
  if (name == "NAdam") return made.operator()<det::optim::NAdam>(det::optim::NAdamOptions(0.02));
  if (name == "RAdam") return made.operator()<det::optim::RAdam>(det::optim::RAdamOptions(0.02));
  if (name == "ASGD") return made.operator()<det::optim::ASGD>(det::optim::ASGDOptions(0.02).t0(2));
  if (name == "Rprop") return made.operator()<det::optim::Rprop>(det::optim::RpropOptions(0.02));
  if (name == "LBFGS") return std::make_unique<lib::LBFGS>(parameters, lib::LBFGSOptions(0.1));
  // Adagrad makes its state in the constructor, for one group.
  return std::make_unique<lib::Adagrad>(parameters, lib::AdagradOptions(0.1).lr_decay(0.01));
}

class ZeroTrial : public det::Trial {
 public:
  explicit ZeroTrial(det::TrialContext& context)
      : context_(context), width_(context.get_hparam<int64_t>("width")) {
    for (int layer = 0; layer < 4; ++layer) {
      model_->push_back(torch::nn::Linear(layer == 0 ? 8 : width_, width_));
      model_->push_back(torch::nn::Tanh());
    }
    model_->push_back(torch::nn::Linear(width_, 3));
    context.wrap_model(model_);
    optimizer_ = &context.wrap_optimizer(
        make_optimizer(context.get_hparam<std::string>("optimizer"), model_->parameters()));
    model_->parameters().front().set_requires_grad(false);
  }
  det::DataLoader build_training_data_loader() override {
    const torch::Tensor data = torch::arange(96 * 8, torch::kFloat).reshape({96, 8}).mul(0.7).sin();
    return {det::TensorDataset(data, torch::arange(96).remainder(3)),
            {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }
  det::DataLoader build_validation_data_loader() override {
    return {det::testing::small_data(), {.batch_size = 4}};
  }
  det::Metrics train_batch(det::Batch& batch, int64_t, int64_t batch_idx) override {
    if (batch_idx == 8) start_ = det::mono_now();
    model_->parameters().front().set_requires_grad(batch_idx >= 2);
    if (batch_idx == 5 && context_.get_hparam<bool>("replace"))
      for (torch::Tensor& parameter : model_->parameters()) parameter.set_data(parameter.detach().clone());
    const auto [data, target] = batch.unpack<2>();
    const torch::Tensor loss = torch::cross_entropy_loss(model_->forward(data), target);
    context_.backward(loss);
    context_.step_optimizer(*optimizer_, [](auto& parameters) { det::clip_grad_norm(parameters, 5.0); });
    micros_ = (det::mono_now() - start_).count() / std::max<int64_t>(batch_idx - 7, 1);
    return {{"loss", loss}};
  }
  det::Metrics evaluate_batch(det::Batch&) override { return {{"validation_loss", 0.0}}; }

  torch::nn::Sequential model_;
  lib::Optimizer* optimizer_ = nullptr;
  int64_t micros_ = 0;

 private:
  det::TrialContext& context_;
  int64_t width_;
  det::MonoTime start_{};
};

std::int64_t tensor_bytes(const det::pickle::Value& value) {
  std::int64_t bytes = 0;
  if (const auto* tensor = value.as<torch::Tensor>()) return static_cast<std::int64_t>(tensor->nbytes());
  if (const auto* dict = value.as<det::pickle::Dict>())
    for (const auto& [name, item] : dict->items) bytes += tensor_bytes(item);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const std::vector<std::string> words(argv + 1, argv + argc);
  return det::run(
      [&](det::TrialContext& context) {
        ZeroTrial trial(context);
        det::Trainer(trial, context)
            .fit({.max_length = det::Batches(std::stoi(words[3])),
                  .checkpoint_period = det::Batches(words.size() > 5 ? std::stoi(words[5]) : 4),
                  .reporting_period = det::Batches(4),
                  .latest_checkpoint = "latest"});
        det::Sha256 digest;
        for (const torch::Tensor& parameter : trial.model_->parameters()) {
          const torch::Tensor plain = parameter.detach().contiguous();
          digest.update({static_cast<const char*>(plain.data_ptr()), plain.nbytes()});
        }
        const det::WrappedObjects& wrapped = context.state().wrapped;
        const auto names = det::parameter_names(wrapped);
        const auto state =
            wrapped.zero.empty()
                ? det::pickle::member(det::collect_optimizer(names, *trial.optimizer_), "state")
                : det::collect_optimizer_part(names, *trial.optimizer_, *wrapped.zero[0]);
        std::cout << ("rank " + digest.hex() + " " + std::to_string(tensor_bytes(state)) + " " +
                      std::to_string(trial.micros_) + "\n")
                  << std::flush;
      },
      {.exp_conf = Json{{"optimizations", {{"zero", std::stoi(words[1])}}}},
       .hparams = Json{{"global_batch_size", 16},
                       {"optimizer", words[2]},
                       {"width", std::stoi(words[4])},
                       {"replace", words.size() > 6}},
       .checkpoint_dir = words[0],
       .enable_tensorboard_logging = false});
}
