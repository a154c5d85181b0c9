// The order of the trainer's actions, and resuming from a checkpoint.
#include "fixture.h"
#include "harness/src/checkpoint/pickle.h"
#include "harness/src/checkpoint/zip.h"
#include "ranks.h"

// Catch2 must follow LibTorch: both define CHECK.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>

namespace det {
namespace {

using testing::Folder;
using testing::make_state;
using testing::Record;
using testing::same_bits;
using testing::SmallTrial;
using Events = std::vector<std::string>;
using Steps = std::vector<std::int64_t>;

struct Run {
  FitResult result;
  std::vector<torch::Tensor> parameters;
};

/// Builds a new trial in `storage` and fits it.
Run fit(Record& record, const std::string& storage, const FitOptions& options, Json config = Json::object()) {
  TrialContext context(make_state(record, storage, std::move(config)));
  SmallTrial trial(context, record);
  Run run{Trainer(trial, context).fit(options), {}};
  for (const torch::Tensor& parameter : trial.model()->parameters())
    run.parameters.push_back(parameter.clone());
  return run;
}

TEST_CASE("actions due at one batch run in order: training, validation, progress") {
  Folder storage;
  Record record;
  const Run run = fit(record, storage,
                      {.max_length = Batches(10),
                       .checkpoint_period = Batches(4),
                       .validation_period = Batches(5),
                       .reporting_period = Batches(5),
                       .checkpoint_policy = CheckpointPolicy::kNone});
  CHECK(record.events == Events{"training 4", "training 5", "validation 5", "progress 5", "training 8",
                                "training 10", "validation 10", "progress 10", "progress 10"});
  CHECK(record.checkpoints == Steps{4, 8, 10});
  CHECK(run.result.batches_trained == 10);
  CHECK(run.result.reason == FitResult::Reason::kCompleted);
}

TEST_CASE("an epoch is one pass of the training loader, and the end validates and saves once") {
  Folder storage;
  Record record;
  fit(record, storage, {.max_length = Epochs(2), .validation_period = Epochs(1)});
  CHECK(record.events == Events{"training 5", "validation 5", "training 10", "validation 10", "progress 10"});
  CHECK(record.checkpoints == Steps{5, 10});
  CHECK(record.metrics.back().second["batches"] == 10);
  CHECK(record.metrics.back().second["epochs"] == 2);
}

TEST_CASE("with the profiler, the time per phase is reported with the training metrics") {
  Folder storage;
  Record record;
  fit(record, storage,
      {.max_length = Batches(10),
       .validation_period = Batches(5),
       .reporting_period = Batches(5),
       .checkpoint_policy = CheckpointPolicy::kNone,
       .profiling_enabled = true});
  std::vector<std::string> timings;
  std::set<std::string> phases;
  for (const auto& [name, metrics] : record.metrics) {
    if (!name.starts_with("timing")) continue;
    timings.push_back(name);
    for (const auto& [phase, seconds] : metrics.items()) {
      CHECK(seconds.get<double>() > 0);
      phases.insert(phase);
    }
  }
  CHECK(timings == Events{"timing 5", "timing 10"});
  CHECK(phases ==
        std::set<std::string>{"other", "data", "forward", "backward", "optimizer", "validation", "report"});
}

TEST_CASE("the global batch size converts records to batches") {
  Folder storage;
  Record record;
  CHECK(fit(record, storage, {.max_length = Records(30)}).result.batches_trained == 7);
}

TEST_CASE("the policy best saves when the searcher's metric improves") {
  Folder storage;
  Record record;
  const Json config = {{"searcher", {{"metric", "validation_loss"}}}};
  fit(record, storage, {.max_length = Batches(30), .validation_period = Batches(1)}, config);
  double best = 1e9;
  Steps expected;
  for (const auto& [event, metrics] : record.metrics) {
    if (!event.starts_with("validation")) continue;
    const double loss = metrics["validation_loss"].get<double>();
    if (loss < best || event == "validation 30") expected.push_back(std::stoll(event.substr(10)));
    best = std::min(best, loss);
  }
  CHECK(record.checkpoints == expected);
}

TEST_CASE("step zero validation runs first, and test mode trains one batch") {
  Folder storage;
  Record record;
  fit(record, storage, {.max_length = Batches(1), .step_zero_validation = true});
  CHECK(record.events.front() == "validation 0");
  Record test;
  const Run run = fit(test, storage, {.max_length = Epochs(50), .test_mode = true});
  CHECK(run.result.batches_trained == 1);
  CHECK(test.events == Events{"training 1", "progress 1", "validation 1", "progress 1"});
  CHECK(test.checkpoints == Steps{1});
}

TEST_CASE(
    "the state of a validation before training is saved, and a run that starts from it repeats nothing") {
  Folder storage, other;
  Record whole, first, second;
  const FitOptions options{.max_length = Batches(3), .step_zero_validation = true};
  const Run uninterrupted = fit(whole, other, options);
  CHECK(whole.checkpoints == Steps{0, 3});
  TrialContext context(make_state(first, storage));
  SmallTrial trial(context, first);
  context.set_stop_requested();
  // A run of the same length would stop, too.
  FitOptions resumed = options, shorter = options;
  shorter.max_length = Batches(2);
  resumed.latest_checkpoint = Trainer(trial, context).fit(shorter).checkpoint;
  CHECK(first.checkpoints == Steps{0});
  const Run run = fit(second, storage, resumed);
  CHECK(same_bits(run.parameters, uninterrupted.parameters));
  auto metrics = first.metrics;
  metrics.insert(metrics.end(), second.metrics.begin(), second.metrics.end());
  CHECK(metrics == whole.metrics);
}

TEST_CASE("preemption saves, acknowledges and exits, and the next run ends with the same bits and reports") {
  Folder storage, other;
  const FitOptions options{
      .max_length = Batches(23), .validation_period = Batches(6), .reporting_period = Batches(4)};
  Record whole;
  const Run uninterrupted = fit(whole, other, options);
  for (int at = 1; at <= 20; ++at) {
    Folder storage;
    Record first, second;
    first.preempt_at = at;
    const Run paused = fit(first, storage, options);
    CHECK(paused.result.reason == FitResult::Reason::kPreempted);
    CHECK(first.events.back() == "acknowledged");
    FitOptions resumed = options;
    resumed.latest_checkpoint = "latest";
    const Run run = fit(second, storage, resumed);
    CHECK(same_bits(run.parameters, uninterrupted.parameters));
    auto metrics = first.metrics;
    metrics.insert(metrics.end(), second.metrics.begin(), second.metrics.end());
    CHECK(metrics == whole.metrics);
  }
}

TEST_CASE("a trial that requests a stop is validated, saved and completed") {
  Folder storage;
  Record record;
  TrialContext context(make_state(record, storage));
  SmallTrial trial(context, record);
  context.set_stop_requested();
  const FitResult result = Trainer(trial, context).fit({.max_length = Batches(9)});
  CHECK(result.reason == FitResult::Reason::kStopRequested);
  CHECK(record.events == Events{"validation 0", "progress 0"});
  CHECK(record.checkpoints == Steps{0});
}

TEST_CASE("another trial's checkpoint provides its weights, and counting restarts at 0") {
  Folder storage;
  Record first, second;
  const Run source = fit(first, storage, {.max_length = Batches(8)});
  auto state = make_state(second, storage);
  state->run.info.trial_id = 99;
  TrialContext context(std::move(state));
  SmallTrial trial(context, second);
  context.set_stop_requested();
  Trainer(trial, context).fit({.max_length = Batches(8), .latest_checkpoint = source.result.checkpoint});
  CHECK(same_bits(trial.model()->parameters(), source.parameters));
  CHECK(context.get_initial_batch() == 0);
}

TEST_CASE("a damaged checkpoint is refused by name, and latest falls back to the previous one") {
  Folder storage;
  Record first, second, third;
  fit(first, storage, {.max_length = Batches(4)});
  const Run later = fit(first, storage, {.max_length = Batches(8)});
  std::ofstream(later.result.checkpoint + "/state_dict.pth", std::ios::app) << "x";
  CHECK_THROWS_WITH(
      fit(second, storage, {.max_length = Batches(9), .latest_checkpoint = later.result.checkpoint}),
      Catch::Contains("state_dict.pth has"));
  fit(third, storage, {.max_length = Batches(5), .latest_checkpoint = "latest"});
  // The checkpoint of batch 4 was saved before its validation.
  REQUIRE(third.events.size() > 1);
  CHECK(third.events[0] == "validation 4");
  CHECK(third.events[1] == "training 5");
}

TEST_CASE("each rank starts from the checkpoint in its own storage directory") {
  Folder storage, other;
  const std::string storages[] = {storage, std::string(other) + "/copy"};
  Record saved;
  fit(saved, storages[0], {.max_length = Batches(4)});
  std::filesystem::copy(storages[0], storages[1], std::filesystem::copy_options::recursive);
  const testing::ReservedPort port;
  const auto start = [&](int rank) {
    Record record;
    auto state = make_state(record, storages[rank]);
    RankInfo ranks;
    ranks.rank = ranks.cross_rank = rank;
    ranks.size = ranks.cross_size = 2;
    ranks.chief_port = port.port();
    state->run.distributed = std::make_unique<DistributedContext>(ranks, 60);
    TrialContext context(std::move(state));
    SmallTrial trial(context, record);
    return Trainer(trial, context).fit({.max_length = Batches(4), .latest_checkpoint = "latest"}).checkpoint;
  };
  auto second = std::async(std::launch::async, start, 1);
  CHECK_THAT(start(0), Catch::StartsWith(storages[0] + "/"));
  CHECK_THAT(second.get(), Catch::StartsWith(storages[1] + "/"));
}

/// Batches without end.
struct EndlessSource final : BatchSource {
  std::optional<Batch> next() override { return Batch(torch::ones({4, 6}), torch::zeros({4}, torch::kLong)); }
};

TEST_CASE("a length in epochs is refused for training data without a size") {
  struct Trial : SmallTrial {
    using SmallTrial::SmallTrial;
    DataLoader build_training_data_loader() override { return DataLoader(EndlessSource()); }
  };
  const auto train = [](const FitOptions& options) {
    Folder storage;
    Record record;
    TrialContext context(make_state(record, storage));
    context.disable_dataset_reproducibility_checks();
    Trial trial(context, record);
    return Trainer(trial, context).fit(options).batches_trained;
  };
  CHECK(train({.max_length = Batches(3)}) == 3);
  CHECK_THROWS_WITH(
      train({.max_length = Epochs(2)}),
      Catch::Contains("max_length: the training data has no size") && Catch::Contains("use batches"));
  CHECK_THROWS_WITH(train({.max_length = Batches(3), .validation_period = Epochs(1)}),
                    Catch::Contains("validation_period: the training data has no size"));
}

TEST_CASE("the weights of a checkpoint load into a model of the same shape only") {
  Folder storage;
  Record record;
  const Run run = fit(record, storage, {.max_length = Batches(3)});
  torch::nn::Sequential same(torch::nn::Linear(6, 8), torch::nn::ReLU(), torch::nn::Dropout(0.3),
                             torch::nn::Linear(8, 3));
  load_model(run.result.checkpoint, *same);
  CHECK(same_bits(same->parameters(), run.parameters));
  torch::nn::Sequential wider(torch::nn::Linear(6, 9), torch::nn::ReLU(), torch::nn::Dropout(0.3),
                              torch::nn::Linear(9, 3));
  CHECK_THROWS_WITH(load_model(run.result.checkpoint, *wider),
                    Catch::Contains("model_0.0.weight is [8, 6], the model's is [9, 6]"));
}

TEST_CASE("errors name the missing item and the existing ones") {
  Folder storage;
  Record record;
  TrialContext context(make_state(record, storage));
  CHECK_THROWS_WITH(
      context.get_hparam<double>("learning_rat"),
      Catch::Contains("no hyperparameter \"learning_rat\"; there are: global_batch_size, learning_rate") &&
          Catch::Contains("did you mean \"learning_rate\"?"));
  CHECK_THROWS_WITH(context.get_hparam<int>("name"),
                    Catch::Contains("\"name\" is \"x\", not a whole number"));
  CHECK(context.get_hparam<double>("global_batch_size") == 4);
  torch::nn::Linear loose(2, 2);
  CHECK_THROWS_WITH(context.wrap_optimizer(torch::optim::SGD(loose->parameters(), 0.1)),
                    Catch::Contains("belongs to no wrapped model"));
  context.wrap_model(loose);
  torch::optim::SGD stray(loose->parameters(), 0.1);
  CHECK_THROWS_WITH(context.step_optimizer(stray), Catch::Contains("not the one wrap_optimizer returned"));
  Record bare;
  CHECK_THROWS_WITH(fit(bare, storage, {}), Catch::Contains("how long to train is unknown"));
  CHECK_THROWS_WITH(fit(bare, storage, {.max_length = Batches(0)}),
                    Catch::Contains("max_length must be at least 1"));
  CHECK_THROWS_WITH(
      fit(bare, storage, {.max_length = Batches(1)}, {{"searcher", {{"metric", "acuracy"}}}}),
      Catch::Contains("searcher.metric is \"acuracy\", but the numbers of validation are: validation_loss"));
}

TEST_CASE("the configuration sets the training length and the validation period") {
  const auto length = [](const Json& config) { return fit_options(config).max_length; };
  CHECK(length({{"searcher", {{"max_length", {{"epochs", 3}}}}}})->unit == Length::Unit::kEpochs);
  CHECK(length({{"searcher", {{"max_length", 50}}}})->count == 50);
  CHECK(length({{"searcher", {{"max_steps", 2}}}})->count == 200);
  CHECK(length({{"searcher", {{"max_time", 7}, {"time_metric", "epochs"}}}})->unit == Length::Unit::kEpochs);
  CHECK_FALSE(length(Json::object()).has_value());
  const FitOptions options = fit_options({{"scheduling_unit", 10},
                                          {"min_validation_period", {{"batches", 30}}},
                                          {"min_checkpoint_period", {{"batches", 0}}},
                                          {"checkpoint_policy", "none"},
                                          {"perform_initial_validation", true}});
  CHECK(options.reporting_period.count == 10);
  CHECK(options.validation_period->count == 30);
  CHECK_FALSE(options.checkpoint_period.has_value());
  CHECK(options.checkpoint_policy == CheckpointPolicy::kNone);
  CHECK(options.step_zero_validation);
}

TEST_CASE("a search by rungs gets a validation at each rung") {
  const auto moments = [](const Json& searcher) {
    const auto period = fit_options({{"searcher", searcher}}).validation_period;
    return period ? period->at : std::vector<std::int64_t>{};
  };
  using Moments = std::vector<std::int64_t>;
  Json searcher{{"name", "async_halving"},
                {"num_rungs", 3},
                {"max_time", 937},
                {"time_metric", "batches"},
                {"max_trials", 2}};
  CHECK(moments(searcher) == Moments{58, 234, 937});
  searcher["divisor"] = 3;
  CHECK(moments(searcher) == Moments{104, 312, 937});
  Json adaptive{{"name", "adaptive_asha"}, {"max_trials", 16}, {"max_time", 937}, {"time_metric", "batches"}};
  CHECK(moments(adaptive) == Moments{58, 234, 937});
  adaptive["max_trials"] = 500;
  CHECK(moments(adaptive) == Moments{3, 14, 58, 234, 937});
  adaptive["bracket_rungs"] = {2, 1};
  CHECK(moments(adaptive) == Moments{234, 937});
  CHECK(moments({{"name", "random"}, {"max_length", {{"batches", 100}}}}).empty());
  // An extended search keeps the rungs that its first trials have results at.
  Json extended = adaptive;
  extended["rungs"] = {58, 234, 937, 2000};
  CHECK(moments(extended) == Moments{58, 234, 937, 2000});
  const Json asked{{"searcher", searcher}, {"min_validation_period", {{"batches", 50}}}};
  CHECK(fit_options(asked).validation_period->count == 50);
  CHECK(fit_options(
            {{"searcher", {{"name", "async_halving"}, {"num_rungs", 2}, {"max_length", {{"epochs", 8}}}}}})
            .validation_period->unit == Length::Unit::kEpochs);
}

TEST_CASE("a file of tensors survives a round trip, and only plain data is read") {
  Folder folder;
  const std::string path = std::string(folder) + "/x.pth";
  pickle::Dict dict;
  for (const auto type :
       {torch::kFloat, torch::kDouble, torch::kLong, torch::kByte, torch::kBool, torch::kBFloat16}) {
    dict.add(torch::toString(type), torch::arange(6).reshape({2, 3}).to(type));
  }
  dict.add("transposed", torch::arange(6).reshape({2, 3}).t());
  dict.add("scalar", torch::tensor(3.5));
  dict.add("empty", torch::empty({0, 4}));
  dict.add("numbers",
           pickle::List{std::int64_t{-5}, std::int64_t{1} << 40, 0.1, true, std::string("text"), {}});
  pickle::save(dict, path);
  const pickle::Value loaded = pickle::load(path);
  for (const auto& [name, value] : dict.items) {
    const pickle::Value* back = loaded.as<pickle::Dict>()->find(name);
    REQUIRE(back != nullptr);
    const auto* tensor = value.as<torch::Tensor>();
    if (tensor != nullptr) CHECK(torch::equal(*tensor, *back->as<torch::Tensor>()));
  }
  const auto& numbers = *loaded.as<pickle::Dict>()->find("numbers")->as<pickle::List>();
  CHECK(*numbers[1].as<std::int64_t>() == std::int64_t{1} << 40);
  CHECK(*numbers[2].as<double>() == 0.1);

  const std::string good = read_file(path).value();
  ZipWriter evil(path);
  evil.add("archive/data.pkl",
           std::string("\x80\x02") + "cposix\nsystem\n(X" + std::string("\x02\0\0\0", 4) + "lstR.");
  evil.finish();
  CHECK_THROWS_WITH(pickle::load(path),
                    Catch::Contains("wants to call posix.system") && Catch::Contains("refused"));
  for (std::size_t size = 0; size < good.size(); size += 97) {
    std::ofstream(path, std::ios::binary) << good.substr(0, size);
    CHECK_THROWS_AS(pickle::load(path), std::runtime_error);
  }
}

TEST_CASE("an optimizer with a closure evaluates the loss of a batch several times") {
  Folder storage;
  Record record;
  TrialContext context(make_state(record, storage));
  torch::nn::Linear line = context.wrap_model(torch::nn::Linear(3, 1));
  auto& lbfgs = context.wrap_optimizer(
      torch::optim::LBFGS(line->parameters(), torch::optim::LBFGSOptions(1).line_search_fn("strong_wolfe")));
  const torch::Tensor data = torch::arange(30, torch::kFloat).reshape({10, 3}).sin();
  int evaluations = 0;
  const auto loss_of = [&] { return torch::mse_loss(line(data), data.sum(1, true) + 2); };
  const torch::Tensor before = loss_of().detach();
  const torch::Tensor first = context.step_optimizer(lbfgs, [&] {
    ++evaluations;
    torch::Tensor loss = loss_of();
    context.backward(loss);
    return loss;
  });
  CHECK(evaluations > 3);
  CHECK(first.item<double>() == before.item<double>());
  CHECK_FALSE(first.requires_grad());
  CHECK(loss_of().item<double>() < 1e-8);
  CHECK_FALSE(line->weight.grad().defined());
  CHECK_THROWS_WITH(context.step_optimizer(lbfgs, [] { return torch::Tensor(); }),
                    Catch::Contains("the closure returned no loss"));
  context.state().gradients.aggregation.frequency = 2;
  CHECK_THROWS_WITH(context.step_optimizer(lbfgs, loss_of), Catch::Contains("aggregation_frequency > 1"));
}

}  // namespace
}  // namespace det
