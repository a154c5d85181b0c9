// Failing validations, and the check before training.
#include "fixture.h"

// Catch2 must follow LibTorch: both define CHECK.
#include <catch2/catch.hpp>

namespace det {
namespace {

using testing::Folder;
using testing::make_state;
using testing::Record;
using testing::same_bits;
using testing::SmallTrial;
using Events = std::vector<std::string>;
using Steps = std::vector<std::int64_t>;

/// What the evaluation of a trial does beside its metric.
struct Evaluation {
  int fail_in_call = -1;  ///< throws in this call, counted from 0
  bool changes_model = false;
  bool swaps_weights = false;  ///< a callback validates with other weights
  int calls = 0;
};

/// Validates with other weights, as an average of weights does.
class SwapWeights final : public Callback {
 public:
  explicit SwapWeights(torch::Tensor weight) : weight_(std::move(weight)) {}
  void on_validation_start() override {
    kept_ = weight_.detach().clone();
    weight_.detach().add_(1);
  }
  void on_validation_end(const Json&) override { weight_.detach().copy_(kept_); }

 private:
  torch::Tensor weight_, kept_;
};

/// Its evaluation draws random numbers, so that a resume must restore the generator of that moment.
class EvaluatedTrial final : public SmallTrial {
 public:
  EvaluatedTrial(TrialContext& context, Record& record, Evaluation& evaluation)
      : SmallTrial(context, record), evaluation_(evaluation) {}
  Metrics evaluate_batch(Batch& batch) override {
    if (evaluation_.calls++ == evaluation_.fail_in_call) throw std::runtime_error("no such class");
    (void)torch::rand({3});
    if (evaluation_.changes_model) model()->parameters()[0].add_(1);
    return SmallTrial::evaluate_batch(batch);
  }
  Callbacks build_callbacks() override {
    if (!evaluation_.swaps_weights) return {};
    return {{"swap", std::make_shared<SwapWeights>(model()->parameters()[0])}};
  }

 private:
  Evaluation& evaluation_;
};

class FullDatasetTrial final : public SmallTrial {
 public:
  using SmallTrial::SmallTrial;
  Metrics evaluate_batch(Batch&) override { throw std::logic_error("evaluate_full_dataset takes its place"); }
  std::optional<Metrics> evaluate_full_dataset(const DataLoader&) override {
    return Metrics{{"validation_loss", 0.5}};
  }
};

/// Builds a trial in `storage` and fits it. Returns its parameters.
std::vector<torch::Tensor> fit_evaluated(Record& record, Evaluation& evaluation, const std::string& storage,
                                         const FitOptions& options, Json config = Json::object()) {
  TrialContext context(make_state(record, storage, std::move(config)));
  EvaluatedTrial trial(context, record, evaluation);
  Trainer(trial, context).fit(options);
  std::vector<torch::Tensor> parameters;
  for (const torch::Tensor& parameter : trial.model()->parameters()) parameters.push_back(parameter.clone());
  return parameters;
}

/// Ten batches with validations after five and ten.
FitOptions two_validations() {
  return {.max_length = Batches(10),
          .validation_period = Batches(5),
          .checkpoint_policy = CheckpointPolicy::kNone,
          .latest_checkpoint = "latest",
          .sanity_batches = 0};
}

TEST_CASE("a failing validation costs no batch, and the next run begins with it") {
  const FitOptions options = two_validations();
  Folder undisturbed, storage;
  Record whole, failing, resumed;
  Evaluation good, bad;
  const auto expected = fit_evaluated(whole, good, undisturbed, options);
  CHECK(whole.checkpoints == Steps{10});
  // 18 records in batches of 5: a validation has 4 calls.
  std::int64_t at = 0;
  Events rest;
  SECTION("in the middle") {
    bad.fail_in_call = 2, at = 5;
    rest = {"validation 5", "training 10", "validation 10", "progress 10"};
  }
  SECTION("at the end") {
    bad.fail_in_call = 6, at = 10;
    rest = {"validation 10", "progress 10"};
  }
  CHECK_THROWS_WITH(fit_evaluated(failing, bad, storage, options), "no such class");
  CHECK(failing.checkpoints == Steps{at});
  Evaluation again;
  CHECK(same_bits(fit_evaluated(resumed, again, storage, options), expected));
  CHECK(resumed.events == rest);
}

TEST_CASE("a validation that fails after a hook saves nothing, because the hook may have changed the state") {
  const FitOptions options = two_validations();
  Folder undisturbed, storage;
  Record whole, failing, resumed;
  Evaluation good{.swaps_weights = true}, again{.swaps_weights = true};
  Evaluation bad{.fail_in_call = 2, .swaps_weights = true};
  const auto expected = fit_evaluated(whole, good, undisturbed, options);
  CHECK_THROWS_WITH(fit_evaluated(failing, bad, storage, options), "no such class");
  CHECK(failing.checkpoints.empty());
  CHECK(same_bits(fit_evaluated(resumed, again, storage, options), expected));
}

/// Requests a stop in its fourth batch. Its validations can fail.
class StoppingTrial final : public SmallTrial {
 public:
  StoppingTrial(TrialContext& context, Record& record, bool fails)
      : SmallTrial(context, record), context_(context), fails_(fails) {}
  Metrics train_batch(Batch& batch, int64_t epoch, int64_t number) override {
    if (number == 3) context_.set_stop_requested();
    return SmallTrial::train_batch(batch, epoch, number);
  }
  Metrics evaluate_batch(Batch& batch) override {
    if (fails_) throw std::runtime_error("no such class");
    return SmallTrial::evaluate_batch(batch);
  }

 private:
  TrialContext& context_;
  bool fails_;
};

TEST_CASE("a stop outlives a failed last validation, and a run with a longer length trains on") {
  Folder storage;
  const auto train = [&](Record& record, std::int64_t batches, bool fails) {
    TrialContext context(make_state(record, storage));
    StoppingTrial trial(context, record, fails);
    return Trainer(trial, context)
        .fit({.max_length = Batches(batches), .latest_checkpoint = "latest", .sanity_batches = 0});
  };
  Record failing, resumed, longer;
  CHECK_THROWS_WITH(train(failing, 10, true), "no such class");
  CHECK(failing.checkpoints == Steps{4});
  const FitResult stopped = train(resumed, 10, false);
  CHECK(stopped.reason == FitResult::Reason::kStopRequested);
  CHECK(stopped.batches_trained == 4);
  CHECK(resumed.events == Events{"validation 4", "progress 4"});
  const FitResult continued = train(longer, 12, false);
  CHECK(continued.reason == FitResult::Reason::kCompleted);
  CHECK(continued.batches_trained == 12);
}

TEST_CASE("a wrong searcher metric and a failing evaluation end a trial before its first batch") {
  Folder storage;
  Record record;
  Evaluation evaluation;
  std::string message = "no such class";
  Json config = Json::object();
  SECTION("metric") {
    config = {{"searcher", {{"metric", "validation_los"}}}};
    message =
        "searcher.metric is \"validation_los\", but the numbers of validation are: validation_loss; did you "
        "mean \"validation_loss\"?";
  }
  SECTION("evaluation") { evaluation.fail_in_call = 1; }
  CHECK_THROWS_WITH(fit_evaluated(record, evaluation, storage, {.max_length = Batches(10)}, config),
                    Catch::Contains(message));
  CHECK(evaluation.calls == 2);
  CHECK(record.events.empty());
  CHECK(record.checkpoints.empty());
}

TEST_CASE("a checkpoint storage that cannot be written ends a trial before its first batch") {
  Folder folder;
  const std::string file = std::string(folder) + "/file";
  REQUIRE(write_file_atomic(file, "no directory").has_value());
  Record record;
  Evaluation evaluation;
  CHECK_THROWS_WITH(fit_evaluated(record, evaluation, file + "/below", {.max_length = Batches(10)}),
                    Catch::StartsWith("a checkpoint cannot be saved: "));
  CHECK(record.events.empty());
}

TEST_CASE("the check before training changes no bit and reports nothing") {
  const bool changes_model = GENERATE(false, true);
  Folder storage;
  Record checked, unchecked;
  Evaluation with{.changes_model = changes_model}, without{.changes_model = changes_model};
  const auto left = fit_evaluated(checked, with, storage, {.max_length = Batches(10)});
  const auto right =
      fit_evaluated(unchecked, without, storage, {.max_length = Batches(10), .sanity_batches = 0});
  CHECK(with.calls == without.calls + 2);
  CHECK(same_bits(left, right));
  CHECK(checked.metrics == unchecked.metrics);
}

TEST_CASE("only a new trial is checked, and sanity_validation: false turns the check off") {
  CHECK(fit_options(Json::object()).sanity_batches == 2);
  CHECK(fit_options({{"sanity_validation", false}}).sanity_batches == 0);
  Folder storage;
  Record record;
  Evaluation first, second;
  (void)fit_evaluated(record, first, storage, {.max_length = Batches(3)});
  CHECK(first.calls == 2 + 4);
  (void)fit_evaluated(record, second, storage, {.max_length = Batches(6), .latest_checkpoint = "latest"});
  // The validation after the checkpoint of batch 3, and the last one.
  CHECK(second.calls == 4 + 4);
}

TEST_CASE("a trial that evaluates the full dataset is not checked with single batches") {
  Folder storage;
  Record record;
  TrialContext context(make_state(record, storage));
  FullDatasetTrial trial(context, record);
  CHECK(Trainer(trial, context).fit({.max_length = Batches(2)}).validation_metrics.at("validation_loss") ==
        0.5);
}

/// An embedding with sparse gradients; clips nothing.
class SparseTrial final : public Trial {
 public:
  explicit SparseTrial(TrialContext& context)
      : context_(context),
        table_(context.wrap_model(torch::nn::Embedding(torch::nn::EmbeddingOptions(3, 2).sparse(true)))),
        optimizer_(context.wrap_optimizer(torch::optim::SGD(table_->parameters(), 0.1))) {}
  DataLoader build_training_data_loader() override { return {testing::small_data(), {.batch_size = 4}}; }
  DataLoader build_validation_data_loader() override { return {testing::small_data(), {.batch_size = 4}}; }
  Metrics train_batch(Batch& batch, int64_t, int64_t) override {
    const torch::Tensor loss = table_(batch.target()).square().mean();
    context_.backward(loss);
    context_.step_optimizer(optimizer_, nullptr);
    return loss;
  }
  Metrics evaluate_batch(Batch& batch) override {
    return {{"validation_loss", table_(batch.target()).square().mean()}};
  }

 private:
  TrialContext& context_;
  torch::nn::Embedding table_;
  torch::optim::Optimizer& optimizer_;
};

TEST_CASE("sparse gradients train, and exact mode refuses them") {
  const bool exact = GENERATE(false, true);
  Folder storage;
  Record record;
  TrialContext context(make_state(record, storage));
  if (exact) context.state().gradients.exact = ShardPlan::make(2, 0, 1);
  SparseTrial trial(context);
  Trainer trainer(trial, context);
  if (!exact) {
    CHECK(trainer.fit({.max_length = Batches(2)}).batches_trained == 2);
    return;
  }
  CHECK_THROWS_WITH(
      trainer.fit({.max_length = Batches(2)}),
      Catch::Contains("exact sums dense gradients, and a parameter of shape [3, 2] has a sparse one"));
}

}  // namespace
}  // namespace det
