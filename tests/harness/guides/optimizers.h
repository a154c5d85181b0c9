// Optimizers of a trial: a class of its own, and one with a closure. Regions of the API guide.
#pragma once

#include <det/det.h>

#include <vector>

#include "skeleton.h"

/// Lion (Chen et al., Symbolic Discovery of Optimization Algorithms, 2023).
class Lion : public torch::optim::Optimizer {
 public:
  Lion(std::vector<torch::Tensor> parameters, double lr)
      : Optimizer(std::move(parameters), std::make_unique<torch::optim::SGDOptions>(lr)) {
    for (const torch::Tensor& p : this->parameters()) momentum_.push_back(torch::zeros_like(p));
  }
  torch::Tensor step(LossClosure /*closure*/ = nullptr) override {
    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < momentum_.size(); ++i) {
      torch::Tensor& p = parameters()[i];
      p.sub_(param_groups()[0].options().get_lr() * momentum_[i].lerp(p.grad(), 0.1).sign());
      momentum_[i].lerp_(p.grad(), 0.01);
    }
    return {};
  }
  void save(torch::serialize::OutputArchive& archive) const override { archive.write("momentum", momentum_); }
  void load(torch::serialize::InputArchive& archive) override {
    torch::IValue saved;
    archive.read("momentum", saved);
    momentum_ = saved.toTensorVector();
  }

 private:
  std::vector<torch::Tensor> momentum_;
};

class LionTrial : public det::Trial {
 public:
  explicit LionTrial(det::TrialContext& context)
      : context_(context),
        model_(context.wrap_model(torch::nn::Linear(4, 2))),
        optimizer_(context.wrap_optimizer(Lion(model_->parameters(), 0.02))) {}

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor loss = torch::nn::functional::cross_entropy(model_(batch.data()), batch.target());
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    return {{"validation_loss", torch::nn::functional::cross_entropy(model_(batch.data()), batch.target())}};
  }

  det::DataLoader build_training_data_loader() override { return {made_up_data(), {.batch_size = 8}}; }
  det::DataLoader build_validation_data_loader() override { return {made_up_data(), {.batch_size = 16}}; }

 private:
  det::TrialContext& context_;
  torch::nn::Linear model_;
  Lion& optimizer_;
};

class ClosureTrial : public det::Trial {
 public:
  explicit ClosureTrial(det::TrialContext& context)
      : context_(context),
        model_(context.wrap_model(torch::nn::Linear(4, 2))),
        optimizer_(context.wrap_optimizer(
            torch::optim::LBFGS(model_->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(4)))) {}

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor loss = context_.step_optimizer(optimizer_, [&] {
      torch::Tensor output = model_(batch.data());
      torch::Tensor current = torch::nn::functional::cross_entropy(output, batch.target());
      context_.backward(current);
      return current;
    });
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    return {{"validation_loss", torch::nn::functional::cross_entropy(model_(batch.data()), batch.target())}};
  }

  det::DataLoader build_training_data_loader() override { return {made_up_data(), {.batch_size = 40}}; }
  det::DataLoader build_validation_data_loader() override { return {made_up_data(), {.batch_size = 16}}; }

 private:
  det::TrialContext& context_;
  torch::nn::Linear model_;
  torch::optim::LBFGS& optimizer_;
};
