// Features of a trial beyond a loop, one class each. Regions of the API guide, based on the skeleton.
#pragma once

#include <det/det.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "skeleton.h"

class PairTrial : public det::Trial {
 public:
  explicit PairTrial(det::TrialContext& context)
      : context_(context),
        encoder_(context.wrap_model(torch::nn::Linear(4, 8))),
        head_(context.wrap_model(torch::nn::Linear(8, 2))),
        encoder_optimizer_(context.wrap_optimizer(torch::optim::Adam(encoder_->parameters(), 1e-2))),
        head_optimizer_(context.wrap_optimizer(torch::optim::SGD(head_->parameters(), 0.1))) {}

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor output = head_(torch::relu(encoder_(batch.data())));
    torch::Tensor loss = torch::nn::functional::cross_entropy(output, batch.target());
    context_.backward(loss);
    context_.step_optimizer(encoder_optimizer_);
    context_.step_optimizer(head_optimizer_);
    return {{"loss", loss}};
  }

  det::Metrics evaluate_batch(det::Batch& batch) override {
    torch::Tensor output = head_(torch::relu(encoder_(batch.data())));
    return {{"validation_loss", torch::nn::functional::cross_entropy(output, batch.target())}};
  }

  det::DataLoader build_training_data_loader() override { return {made_up_data(), {.batch_size = 8}}; }
  det::DataLoader build_validation_data_loader() override { return {made_up_data(), {.batch_size = 16}}; }

 private:
  det::TrialContext& context_;
  torch::nn::Linear encoder_, head_;
  torch::optim::Adam& encoder_optimizer_;
  torch::optim::SGD& head_optimizer_;
};

class ScheduledTrial : public MyTrial {
 public:
  explicit ScheduledTrial(det::TrialContext& context)
      : MyTrial(context),
        schedule_(context.wrap_lr_scheduler(det::StepLR(optimizer_, {.step_size = 2, .gamma = 0.1}),
                                            det::LRStepMode::kEveryEpoch)) {}

  const std::vector<double>& learning_rates() const { return schedule_.get_last_lr(); }

 private:
  det::StepLR& schedule_;
};

class ManualTrial : public MyTrial {
 public:
  explicit ManualTrial(det::TrialContext& context)
      : MyTrial(context),
        schedule_(context.wrap_lr_scheduler(det::StepLR(optimizer_, {.step_size = 1, .gamma = 0.5}),
                                            det::LRStepMode::kManual)) {}

  det::Metrics train_batch(det::Batch& batch, int64_t epoch_idx, int64_t batch_idx) override {
    det::Metrics metrics = MyTrial::train_batch(batch, epoch_idx, batch_idx);
    if (batch_idx + 1 == 10) schedule_.step();
    metrics.add("lr", schedule_.get_last_lr()[0]);
    return metrics;
  }

 private:
  det::StepLR& schedule_;
};

class WarmTrial : public MyTrial {
 public:
  explicit WarmTrial(det::TrialContext& context) : MyTrial(context) {
    context.wrap_lr_scheduler(
        det::warm_up(optimizer_, /*steps=*/5, det::CosineAnnealingLR(optimizer_, {.T_max = 20}),
                     /*start_factor=*/0.1),
        det::LRStepMode::kEveryBatch);
  }
};

class StepOnPlateau : public det::Callback {
 public:
  explicit StepOnPlateau(det::ReduceLROnPlateau& schedule) : schedule_(schedule) {}
  void on_validation_end(const det::Json& metrics) override {
    schedule_.step(metrics.at("validation_loss").get<double>());
  }

 private:
  det::ReduceLROnPlateau& schedule_;
};

class PlateauTrial : public MyTrial {
 public:
  explicit PlateauTrial(det::TrialContext& context)
      : MyTrial(context),
        schedule_(context.wrap_lr_scheduler(
            det::ReduceLROnPlateau(optimizer_, {.factor = 0.5, .patience = 1}), det::LRStepMode::kManual)) {}

  det::Callbacks build_callbacks() override {
    return {{"plateau", std::make_shared<StepOnPlateau>(schedule_)}};
  }

 private:
  det::ReduceLROnPlateau& schedule_;
};

class ClippingTrial : public MyTrial {
 public:
  using MyTrial::MyTrial;

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor loss = torch::nn::functional::cross_entropy(model_(batch.data()), batch.target());
    context_.backward(loss);
    context_.step_optimizer(optimizer_,
                            [](auto& parameters) { det::clip_grad_norm(parameters, /*max_norm=*/0.01); });
    return {{"loss", loss}};
  }
};

class AmpTrial : public MyTrial {
 public:
  explicit AmpTrial(det::TrialContext& context) : MyTrial(context) {
    context.use_amp({.dtype = torch::kBFloat16});
  }
};

class ManualAmpTrial : public MyTrial {
 public:
  explicit ManualAmpTrial(det::TrialContext& context)
      : MyTrial(context), scaler_(context.wrap_scaler(det::GradScaler({.init_scale = 1024}))) {}

  det::Metrics train_batch(det::Batch& batch, int64_t /*epoch_idx*/, int64_t /*batch_idx*/) override {
    torch::Tensor loss;
    {
      det::Autocast autocast(context_.device(), torch::kBFloat16);
      loss = torch::nn::functional::cross_entropy(model_(batch.data()), batch.target());
    }
    context_.backward(loss);
    context_.step_optimizer(optimizer_);
    return {{"loss", loss}, {"scale", scaler_.get_scale()}};
  }

 private:
  det::GradScaler& scaler_;
};

class F1 : public det::MetricReducer {
 public:
  void update(const torch::Tensor& predicted, const torch::Tensor& wanted) {
    hits_ += (predicted & wanted).sum().item<int64_t>();
    errors_ += (predicted ^ wanted).sum().item<int64_t>();
  }
  void reset() override { hits_ = errors_ = 0; }
  det::Json per_slot_reduce() override { return {{"hits", hits_}, {"errors", errors_}}; }
  det::Json cross_slot_reduce(const std::vector<det::Json>& per_slot) override {
    double hits = 0, errors = 0;
    for (const det::Json& slot : per_slot) {
      hits += slot.at("hits").get<double>();
      errors += slot.at("errors").get<double>();
    }
    return 2 * hits / (2 * hits + errors);
  }

 private:
  int64_t hits_ = 0, errors_ = 0;
};

class ReducingTrial : public MyTrial {
 public:
  explicit ReducingTrial(det::TrialContext& context)
      : MyTrial(context),
        f1_(context.wrap_reducer(F1(), "f1", /*for_training=*/false)),
        worst_(context.wrap_reducer(
            [](const std::vector<det::Json>& losses) {
              return *std::max_element(losses.begin(), losses.end());
            },
            "worst_loss", /*for_training=*/false)) {}

  det::Metrics evaluate_batch(det::Batch& batch) override {
    torch::Tensor output = model_(batch.data());
    torch::Tensor loss = torch::nn::functional::cross_entropy(output, batch.target());
    f1_.update(output.argmax(1) == 1, batch.target() == 1);
    worst_.update(loss.item<double>());
    return {{"validation_loss", loss}};
  }

 private:
  F1& f1_;
  det::SimpleReducer& worst_;
};

class SummingTrial : public MyTrial {
 public:
  using MyTrial::MyTrial;

  det::Metrics evaluate_batch(det::Batch& batch) override {
    torch::Tensor output = model_(batch.data());
    torch::Tensor wrong = output.argmax(1) != batch.target();
    return {{"validation_loss", torch::nn::functional::cross_entropy(output, batch.target())},
            {"mistakes", wrong.sum()}};
  }

  det::EvaluationReducer evaluation_reducer() override {
    return {{"validation_loss", det::Reducer::kAverage}, {"mistakes", det::Reducer::kSum}};
  }
};

class WholeSetTrial : public MyTrial {
 public:
  using MyTrial::MyTrial;

  std::optional<det::Metrics> evaluate_full_dataset(const det::DataLoader& loader) override {
    std::vector<torch::Tensor> scores;
    for (auto batches = context_.iterate(loader); auto batch = batches.next();) {
      scores.push_back(model_(batch->data()).select(/*dim=*/1, /*index=*/1));
    }
    return det::Metrics{{"median_score", torch::cat(scores).median()}};
  }
};

class StopWhenStuck : public det::Callback {
 public:
  StopWhenStuck(det::TrialContext& context, int patience) : context_(context), patience_(patience) {}

  void on_validation_end(const det::Json& metrics) override {
    const double loss = metrics.at("validation_loss").get<double>();
    waited_ = loss < best_ ? 0 : waited_ + 1;
    best_ = std::min(best_, loss);
    if (waited_ >= patience_) context_.set_stop_requested();
  }
  det::Json state_dict() const override { return {{"best", best_}, {"waited", waited_}}; }
  void load_state_dict(const det::Json& state) override {
    best_ = state.at("best").get<double>();
    waited_ = state.at("waited").get<int>();
  }

 private:
  det::TrialContext& context_;
  int patience_, waited_ = 0;
  double best_ = std::numeric_limits<double>::max();
};

class StoppingTrial : public MyTrial {
 public:
  using MyTrial::MyTrial;

  det::Callbacks build_callbacks() override {
    return {{"stop_when_stuck", std::make_shared<StopWhenStuck>(context_, /*patience=*/2)}};
  }
};

class ProfiledTrial : public MyTrial {
 public:
  explicit ProfiledTrial(det::TrialContext& context) : MyTrial(context) {
    context.set_profiler({.wait = 1, .warmup = 1, .active = 2, .repeat = 2});
  }
};

class MediaTrial : public MyTrial {
 public:
  using MyTrial::MyTrial;

  det::Metrics evaluate_batch(det::Batch& batch) override {
    const torch::Tensor images = batch.data().reshape({-1, 1, 2, 2});
    std::ofstream("predictions.csv") << model_(batch.data()).argmax(1);
    context_.report_image("inputs", images, {.stretch = true});
    context_.report_histogram("weights", model_->weight);
    context_.report_text("notes", "after batch " + std::to_string(context_.current_train_batch()));
    context_.report_table("confusion", {"class", "count"}, det::Json::parse(R"([["cat", 3], ["dog", 1]])"));
    context_.report_file("predictions", "predictions.csv");
    return MyTrial::evaluate_batch(batch);
  }
};

class BoardTrial : public MyTrial {
 public:
  using MyTrial::MyTrial;

  det::Metrics train_batch(det::Batch& batch, int64_t epoch_idx, int64_t batch_idx) override {
    det::Metrics metrics = MyTrial::train_batch(batch, epoch_idx, batch_idx);
    if (batch_idx % 10 == 0) {
      const double norm = model_->weight.norm().item<double>();
      context_.get_tensorboard_writer().add_scalar("weights/norm", norm, batch_idx);
    }
    return metrics;
  }
};

class CheckedTrial : public MyTrial {
 public:
  explicit CheckedTrial(det::TrialContext& context) : MyTrial(context) {
    if (context.get_hparam<int>("layers") > 8)
      throw det::InvalidHP("more than 8 layers do not fit into memory");
  }
};

class ManagedExample : public det::ManagedTrial<torch::nn::Sequential> {
 public:
  using ManagedTrial::ManagedTrial;

  torch::nn::Sequential build_model() override {
    torch::nn::Sequential model(torch::nn::Linear(4, context_.get_hparam<int>("width")), torch::nn::ReLU(),
                                torch::nn::Linear(context_.get_hparam<int>("width"), 2));
    det::reset_parameters(*model);
    return model;
  }

  std::unique_ptr<torch::optim::Optimizer> optimizer(torch::nn::Sequential& model) override {
    return std::make_unique<torch::optim::SGD>(model->parameters(),
                                               context_.get_hparam<double>("learning_rate"));
  }

  det::DataLoader build_training_data_loader() override {
    return {made_up_data(), {.batch_size = context_.get_per_slot_batch_size(), .shuffle = true}};
  }

  det::DataLoader build_validation_data_loader() override { return {made_up_data(), {.batch_size = 16}}; }

  det::Metrics train_batch(det::Batch& batch, torch::nn::Sequential& model, int64_t /*epoch_idx*/,
                           int64_t /*batch_idx*/) override {
    torch::Tensor output = model->forward(batch.data());
    torch::Tensor wrong = output.argmax(1) != batch.target();
    return {{"loss", torch::nn::functional::cross_entropy(output, batch.target())},
            {"train_error", wrong.to(torch::kFloat).mean()}};
  }

  det::Metrics evaluate_batch(det::Batch& batch, torch::nn::Sequential& model) override {
    torch::Tensor wrong = model->forward(batch.data()).argmax(1) != batch.target();
    return {{"validation_error", wrong.to(torch::kFloat).mean()}};
  }
};
