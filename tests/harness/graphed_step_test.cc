// Recorded training steps (`optimizations.cuda_graph`). A recorder without a GPU stands for CUDA graphs: it
// calls the recorded function again, with the batch number and all other values of the recording.
#include "harness/src/trainer/graphed_step.h"

#include <torch/torch.h>

#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "fixture.h"
#include "harness/src/optim/device_step.h"

namespace det {
namespace {

namespace lib = torch::optim;
using testing::same_bits;
using torch::Tensor;

std::vector<Tensor> state_of(lib::Optimizer& optimizer) {
  std::vector<Tensor> tensors;
  for (auto& [key, state] : optimizer.state()) {
    if (auto* adam = dynamic_cast<lib::AdamParamState*>(state.get())) {
      tensors.insert(tensors.end(), {adam->exp_avg(), adam->exp_avg_sq()});
    } else if (auto* sgd = dynamic_cast<lib::SGDParamState*>(state.get())) {
      tensors.push_back(sgd->momentum_buffer());
    }
  }
  return tensors;
}

class RepeatingRecorder final : public GraphRecorder {
 public:
  explicit RepeatingRecorder(ContextState& state) : state_(state) {}
  void execute(const std::function<void()>& work) override { work(); }
  /// What is recorded is not executed: its effects on tensors are undone. Numbers of the CPU's generator are
  /// drawn.
  void record(const std::function<void()>& work) override {
    std::vector<Tensor> tensors = state_of(*state_.wrapped.optimizers[0]), before;
    for (const auto& model : state_.wrapped.models) {
      for (const Tensor& tensor : model->parameters()) tensors.push_back(tensor.detach());
      for (const Tensor& tensor : model->buffers()) tensors.push_back(tensor);
    }
    for (const Tensor& tensor : tensors) before.push_back(tensor.clone());
    const auto undo = [&] {
      for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_(before[i]);
    };
    try {
      work();
    } catch (...) {
      undo();
      throw;
    }
    undo();
    work_ = work;
  }
  void replay() override {
    GraphMode::current->recording = true;
    work_();
    GraphMode::current->recording = false;
    ++replays;
  }
  inline static int replays = 0;

 private:
  ContextState& state_;
  std::function<void()> work_;
};

/// A model with dropout and running means, whose gradients are clipped.
struct Training {
  testing::Record record;
  testing::Folder storage;
  TrialContext context;
  torch::nn::Sequential model = context.wrap_model(
      torch::nn::Sequential(torch::nn::Linear(6, 8), torch::nn::BatchNorm1d(8), torch::nn::ReLU(),
                            torch::nn::Dropout(0.3), torch::nn::Linear(8, 3)));
  lib::Optimizer& optimizer;

  explicit Training(const std::string& kind = "Adam", torch::Device device = torch::kCPU)
      : context(state_on(record, storage, device)), optimizer(make(kind)) {
    RepeatingRecorder::replays = 0;
  }
  static std::unique_ptr<ContextState> state_on(testing::Record& record, const std::string& storage,
                                                torch::Device device) {
    auto state = testing::make_state(record, storage);
    // A tensor on the GPU has an index, which a device without one would not equal.
    state->run.device = device.is_cuda() ? torch::Device(torch::kCUDA, 0) : device;
    return state;
  }
  lib::Optimizer& make(const std::string& kind) {
    if (kind == "SGD")
      return context.wrap_optimizer(
          std::make_unique<lib::SGD>(model->parameters(), lib::SGDOptions(0.1).momentum(0.9)));
    return context.wrap_optimizer(std::make_unique<lib::Adam>(model->parameters(), lib::AdamOptions(0.01)));
  }

  Metrics train(Batch& batch) {
    const Tensor loss = torch::cross_entropy_loss(model->forward(batch.data()), batch.target());
    context.backward(loss);
    context.step_optimizer(optimizer, [](auto& parameters) { clip_grad_norm(parameters, 0.5); });
    return loss;
  }
  /// Learning rates follow a schedule; batch 8 is shorter than the others.
  Batch batch(int number) {
    for (auto& group : optimizer.param_groups()) group.options().set_lr(0.02 / (1 + number));
    const int records = number == 8 ? 2 : 4;
    return {torch::arange(number, number + records * 6, torch::kFloat).reshape({records, 6}).mul(0.7).sin(),
            torch::arange(number, number + records).remainder(3)};
  }
  std::vector<Tensor> weights() {
    std::vector<Tensor> all;
    for (const Tensor& tensor : model->parameters()) all.push_back(tensor.detach().clone());
    for (const Tensor& tensor : model->buffers()) all.push_back(tensor.clone());
    return all;
  }
};

constexpr int kBatches = 14;

}  // namespace

TEST_CASE(
    "repeated steps have the bits of usual ones, with schedules, dropout and clipping, beside a short "
    "batch") {
  const std::string kind = GENERATE("Adam", "SGD");
  Training usual(kind), repeated(kind);
  std::vector<double> losses[2];
  for (const bool repeats : {false, true}) {
    Training& training = repeats ? repeated : usual;
    torch::manual_seed(3);
    GraphedStep step(training.context.state(), std::make_unique<RepeatingRecorder>(training.context.state()));
    for (int number = 0; number < kBatches; ++number) {
      Batch batch = training.batch(number);
      const auto train = [&](Batch& one) { return training.train(one); };
      const Metrics metrics = repeats ? step.train(batch, train) : train(batch);
      losses[repeats ? 1 : 0].push_back(metrics.entries()[0].second.tensor()->item<double>());
    }
    CHECK(step.reason().empty());
    CHECK(step.repeats() == repeats);
  }
  // Three batches of warm-up, one of comparison, a short one; the comparison repeats once, too.
  CHECK(RepeatingRecorder::replays == kBatches - GraphedStep::kWarmUp - 1);
  CHECK(losses[0] == losses[1]);
  CHECK(same_bits(usual.weights(), repeated.weights()));
}

TEST_CASE("a step that a GPU cannot repeat is trained as usual, and the reason is said") {
  using Change = std::function<Metrics(Training&, Batch&, int)>;
  const std::map<std::string, Change> all = {
      {"the metric accuracy is a number of the CPU",
       [](Training& training, Batch& batch, int) {
         Metrics metrics = training.train(batch);
         metrics.add("accuracy", 0.5);
         return metrics;
       }},
      {"train_batch calls current_train_batch",
       [](Training& training, Batch& batch, int) {
         (void)training.context.current_train_batch();
         return training.train(batch);
       }},
      {"train_batch calls a report of media",
       [](Training& training, Batch& batch, int) {
         const Tensor loss = torch::cross_entropy_loss(training.model->forward(batch.data()), batch.target());
         training.context.backward(loss);
         training.context.report_text("note", "one");
         training.context.step_optimizer(training.optimizer);
         return Metrics(loss);
       }},
      {"a repeated step changed 0.weight unlike a usual one",
       [](Training& training, Batch& batch, int number) {
         const Tensor loss =
             torch::cross_entropy_loss(training.model->forward(batch.data()), batch.target()) * number;
         training.context.backward(loss);
         training.context.step_optimizer(training.optimizer);
         return Metrics(loss);
       }},
      {"an option of an optimizer other than its learning rate has changed",
       [](Training& training, Batch& batch, int) { return training.train(batch); }},
      {"0.weight has other memory than in the recording; write to it with copy_() instead of set_data()",
       [](Training& training, Batch& batch, int) { return training.train(batch); }},
  };
  for (const auto& [reason, change] : all) {
    INFO(reason);
    Training usual, graphed;
    for (const bool repeats : {false, true}) {
      Training& training = repeats ? graphed : usual;
      torch::manual_seed(3);
      GraphedStep step(training.context.state(),
                       std::make_unique<RepeatingRecorder>(training.context.state()));
      for (int number = 0; number < kBatches; ++number) {
        Batch batch = training.batch(number);
        if (number == 9 && reason.find("option") != std::string::npos)
          static_cast<lib::AdamOptions&>(training.optimizer.param_groups()[0].options()).weight_decay(0.1);
        if (number == 9 && reason.find("memory") != std::string::npos) {
          for (Tensor& parameter : training.model->parameters())
            parameter.set_data(parameter.detach().clone());
        }
        const auto train = [&, number](Batch& one) { return change(training, one, number); };
        repeats ? step.train(batch, train) : train(batch);
      }
      if (repeats) CHECK_THAT(step.reason(), Catch::StartsWith(reason));
    }
    CHECK(same_bits(usual.weights(), graphed.weights()));
  }
}

TEST_CASE("a trial whose batches all differ in shape is trained as usual, and the reason is said") {
  Training training;
  GraphedStep step(training.context.state(), std::make_unique<RepeatingRecorder>(training.context.state()));
  for (int number = 0; number <= GraphedStep::kMaxWarmUp; ++number) {
    const int records = 2 + number % 3;
    Batch batch{torch::ones({records, 6}), torch::zeros({records}, torch::kLong)};
    step.train(batch, [&](Batch& one) { return training.train(one); });
  }
  CHECK(step.reason() == "3 batches of one shape in turn did not come");
}

TEST_CASE("a first batch of another shape does not keep the others from being repeated") {
  Training training;
  GraphedStep step(training.context.state(), std::make_unique<RepeatingRecorder>(training.context.state()));
  for (int number = 8; number < 14; ++number) {
    Batch batch = training.batch(number);
    step.train(batch, [&](Batch& one) { return training.train(one); });
  }
  CHECK(step.repeats());
}

TEST_CASE("a GPU repeats a recorded step") {
  if (!torch::cuda::is_available()) {
    WARN("no GPU on this machine: nothing recorded");
    return;
  }
  Training usual("Adam", torch::kCUDA), repeated("Adam", torch::kCUDA);
  for (const bool repeats : {false, true}) {
    Training& training = repeats ? repeated : usual;
    torch::manual_seed(3);
    GraphedStep step(training.context.state(), make_graph_recorder(torch::Device(torch::kCUDA, 0)));
    for (int number = 0; number < kBatches; ++number) {
      Batch batch = training.batch(number).map([](const Tensor& tensor) { return tensor.to(torch::kCUDA); });
      const auto train = [&](Batch& one) { return training.train(one); };
      repeats ? step.train(batch, train) : train(batch);
    }
    CHECK(step.reason().empty());
    CHECK(step.repeats() == repeats);
  }
  const std::vector<Tensor> expected = usual.weights(), got = repeated.weights();
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(torch::allclose(expected[i], got[i], 1e-4, 1e-6));
}

TEST_CASE("trials whose steps cannot be recorded are named before they train") {
  const std::map<std::string, std::function<void(ContextState&)>> all = {
      {"reproducibility: exact", [](ContextState& state) { state.gradients.exact.emplace(); }},
      {"aggregation_frequency is greater than 1",
       [](ContextState& state) { state.gradients.aggregation.frequency = 2; }},
      {"the loss scaler", [](ContextState& state) { state.wrapped.scaler = std::make_unique<GradScaler>(); }},
      {"train_batch may step a learning-rate schedule",
       [](ContextState& state) {
         state.wrapped.lr_schedulers.push_back(
             {std::make_unique<ConstantLR>(*state.wrapped.optimizers[0]), LRStepMode::kManual, 1});
       }},
      {"the optimizer has amsgrad",
       [](ContextState& state) {
         static_cast<lib::AdamOptions&>(state.wrapped.optimizers[0]->param_groups()[0].options())
             .amsgrad(true);
       }},
      {"", [](ContextState&) {}},
  };
  for (const auto& [reason, change] : all) {
    Training training;
    change(training.context.state());
    const std::string problem = graph_problem(training.context.state());
    CHECK_THAT(problem, Catch::StartsWith(reason));
    CHECK(problem.empty() == reason.empty());
  }
}

TEST_CASE("on the CPU optimizations.cuda_graph changes nothing") {
  std::vector<Tensor> weights[2];
  for (const bool graph : {false, true}) {
    testing::Record record;
    testing::Folder storage;
    auto state = testing::make_state(record, storage);
    state->gradients.cuda_graph = graph;
    TrialContext context(std::move(state));
    testing::SmallTrial trial(context, record);
    Trainer(trial, context).fit({.max_length = Batches(12)});
    for (const Tensor& tensor : trial.model()->parameters())
      weights[graph ? 1 : 0].push_back(tensor.detach().clone());
  }
  CHECK(same_bits(weights[0], weights[1]));
}

}  // namespace det
