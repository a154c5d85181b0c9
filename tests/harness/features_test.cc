// Trainer features beyond the basic loop: callbacks, reducers, aggregation, schedules, the managed style,
// virtual shards and error messages.
#include "fixture.h"

// Catch2 must follow LibTorch: both define CHECK.
#include <catch2/catch.hpp>
#include <cmath>

namespace det {
namespace {

using testing::Folder;
using testing::make_state;
using testing::Record;
using testing::same_bits;
using testing::small_data;
using testing::SmallTrial;
using Words = std::vector<std::string>;

std::vector<torch::Tensor> copies(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> copies;
  for (const torch::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

/// Records every hook call.
class Diary : public Callback {
 public:
  explicit Diary(Words& words) : words_(words) {}
  void on_trial_startup(int64_t batch, const std::string& from) override {
    note("startup " + std::to_string(batch) + (from.empty() ? "" : " from a checkpoint"));
  }
  void on_checkpoint_load_start(const std::string&) override { note("load"); }
  void on_training_start() override { note("training start"); }
  void on_training_epoch_start(int64_t epoch) override { note("epoch start " + std::to_string(epoch)); }
  void on_training_epoch_end(int64_t epoch) override { note("epoch end " + std::to_string(epoch)); }
  void on_training_workload_end(const Json& metrics) override {
    note("workload end " + metrics.begin().key());
  }
  void on_validation_start() override { note("validation start"); }
  void on_validation_epoch_start() override { note("validation epoch start"); }
  void on_validation_epoch_end(const std::vector<Json>& outputs) override {
    note("validation epoch end " + std::to_string(outputs.size()));
  }
  void on_validation_end(const Json& metrics) override { note("validation end " + metrics.begin().key()); }
  void on_checkpoint_save_start(Json& metadata) override {
    note("save start");
    metadata["mine"] = 1;
  }
  void on_checkpoint_write_end(const std::string& directory) override {
    note(path_exists(directory + "/state_dict.pth") ? "write end" : "write end without files");
  }
  void on_checkpoint_upload_end(const std::string&) override { note("upload end"); }
  void on_trial_shutdown() override { note("shutdown"); }
  Json state_dict() const override { return {{"notes", words_.size()}}; }
  void load_state_dict(const Json& state) override { note("state " + state.at("notes").dump()); }

 private:
  void note(std::string word) { words_.push_back(std::move(word)); }
  Words& words_;
};

class DiaryTrial : public SmallTrial {
 public:
  DiaryTrial(TrialContext& context, Record& record, Words& words)
      : SmallTrial(context, record), words_(words) {}
  Callbacks build_callbacks() override { return {{"diary", std::make_shared<Diary>(words_)}}; }

 private:
  Words& words_;
};

TEST_CASE("every hook is called in order") {
  Folder storage;
  Record record;
  Words words;
  TrialContext context(make_state(record, storage));
  DiaryTrial trial(context, record, words);
  const FitResult result = Trainer(trial, context)
                               .fit({.max_length = Batches(6),
                                     .validation_period = Batches(5),
                                     .checkpoint_policy = CheckpointPolicy::kNone});
  CHECK(words == Words{"startup 0", "training start", "epoch start 0", "epoch end 0", "workload end loss",
                       "validation start", "validation epoch start", "validation epoch end 4",
                       "validation end validation_loss", "epoch start 1", "workload end loss", "save start",
                       "write end", "upload end", "validation start", "validation epoch start",
                       "validation epoch end 4", "validation end validation_loss", "shutdown"});
  const std::string metadata = read_file(result.checkpoint + "/metadata.json").value();
  CHECK(metadata.find("\"mine\": 1") != std::string::npos);

  Words again;
  Record second;
  TrialContext resumed(make_state(second, storage));
  DiaryTrial same(resumed, second, again);
  Trainer(same, resumed).fit({.max_length = Batches(6), .latest_checkpoint = "latest"});
  CHECK(Words(again.begin(), again.begin() + 4) ==
        Words{"startup 6 from a checkpoint", "load", "state 12", "training start"});
}

/// Draws random numbers in the hooks of checkpoints, in numbers that differ between calls.
class DrawInCheckpoints final : public Callback {
 public:
  void on_checkpoint_save_start(Json&) override { draw(); }
  void on_checkpoint_write_end(const std::string&) override { draw(); }
  void on_checkpoint_upload_end(const std::string&) override { draw(); }
  Json state_dict() const override { return draw(), Json::object(); }

 private:
  void draw() const { (void)torch::rand({++calls_}); }
  mutable int64_t calls_ = 0;
};

TEST_CASE("random numbers that hooks of checkpoints draw do not change training") {
  std::vector<torch::Tensor> weights[2];
  for (const bool draws : {false, true}) {
    struct Trial : SmallTrial {
      using SmallTrial::SmallTrial;
      Callbacks build_callbacks() override {
        return draws ? Callbacks{{"draw", std::make_shared<DrawInCheckpoints>()}} : Callbacks{};
      }
      bool draws = false;
    };
    Folder storage;
    Record record;
    TrialContext context(make_state(record, storage));
    Trial trial(context, record);
    trial.draws = draws;
    Trainer(trial, context).fit({.max_length = Batches(12), .checkpoint_period = Batches(2)});
    weights[draws ? 1 : 0] = copies(trial.model()->parameters());
  }
  CHECK(testing::same_bits(weights[0], weights[1]));
}

TEST_CASE("aggregated batches give the same step as one large batch") {
  const auto train = [](std::int64_t batch_size, std::int64_t frequency, std::int64_t batches) {
    Folder storage;
    Record record;
    auto state = make_state(record, storage);
    state->gradients.aggregation.frequency = frequency;
    TrialContext context(std::move(state));
    struct Trial : SmallTrial {
      Trial(TrialContext& context, Record& record, std::int64_t size)
          : SmallTrial(context, record), size(size) {}
      DataLoader build_training_data_loader() override { return {small_data(), {.batch_size = size}}; }
      std::int64_t size;
    } trial(context, record, batch_size);
    trial.model()->eval();
    for (auto& module : trial.model()->children()) {
      if (auto* dropout = module->as<torch::nn::Dropout>()) dropout->options.p(0);
    }
    Trainer(trial, context).fit({.max_length = Batches(batches)});
    return copies(trial.model()->parameters());
  };
  const auto large = train(6, 1, 3), small = train(3, 2, 6), other = train(3, 1, 6);
  for (std::size_t i = 0; i < large.size(); ++i) CHECK(torch::allclose(large[i], small[i], 1e-4, 1e-6));
  CHECK_FALSE(torch::allclose(large[0], other[0], 1e-4, 1e-6));
}

Record train_in_windows(const FitOptions& options) {
  Folder storage;
  Record record;
  auto state = make_state(record, storage);
  state->gradients.aggregation.frequency = 4;
  TrialContext context(std::move(state));
  SmallTrial trial(context, record);
  Trainer(trial, context).fit(options);
  return record;
}

TEST_CASE("a checkpoint waits until no aggregated gradients are pending") {
  const Record record = train_in_windows({.max_length = Batches(12), .checkpoint_period = Batches(5)});
  CHECK(record.checkpoints == std::vector<std::int64_t>{8, 12});
}

TEST_CASE(
    "a validation waits until no aggregated gradients are pending, so that its checkpoint is of its batch") {
  const Record record = train_in_windows({.max_length = Batches(16),
                                          .validation_period = Batches(5),
                                          .checkpoint_policy = CheckpointPolicy::kAll});
  CHECK(record.events == Words{"training 8", "validation 8", "training 12", "validation 12", "training 16",
                               "validation 16", "progress 16"});
  CHECK(record.checkpoints == std::vector<std::int64_t>{8, 12, 16});
}

TEST_CASE("the length is rounded up to whole aggregation windows, and an extension gives the same bits") {
  const auto train = [](const std::string& storage, std::int64_t batches) {
    Record record;
    auto state = make_state(record, storage);
    state->gradients.aggregation.frequency = 4;
    TrialContext context(std::move(state));
    SmallTrial trial(context, record);
    const FitResult result =
        Trainer(trial, context).fit({.max_length = Batches(batches), .latest_checkpoint = "latest"});
    return std::pair(result.batches_trained, copies(trial.model()->parameters()));
  };
  Folder whole, extended;
  const auto expected = train(whole, 16);
  CHECK(train(extended, 10).first == 12);
  CHECK(same_bits(train(extended, 16).second, expected.second));
}

TEST_CASE("a pause loses no value of a training reducer") {
  struct Trial : SmallTrial {
    Trial(TrialContext& context, Record& record)
        : SmallTrial(context, record),
          seen(context.wrap_reducer([](const std::vector<Json>& values) { return Json(values.size()); },
                                    "seen", true, false)) {}
    Metrics train_batch(Batch& batch, int64_t epoch, int64_t number) override {
      seen.update(number);
      return SmallTrial::train_batch(batch, epoch, number);
    }
    SimpleReducer& seen;
  };
  Folder storage;
  std::vector<std::pair<std::string, int>> reports;
  for (const std::int64_t preempt_at : {3, -1}) {
    Record record;
    record.preempt_at = preempt_at;
    TrialContext context(make_state(record, storage));
    Trial trial(context, record);
    Trainer(trial, context)
        .fit({.max_length = Batches(7), .reporting_period = Batches(5), .latest_checkpoint = "latest"});
    for (const auto& [event, metrics] : record.metrics)
      if (event.starts_with("training")) reports.emplace_back(event, metrics.at("seen").get<int>());
  }
  CHECK(reports ==
        std::vector<std::pair<std::string, int>>{{"training 3", 3}, {"training 5", 2}, {"training 7", 2}});
}

TEST_CASE("metric reducers are updated by the trial and reported with its metrics") {
  Folder storage;
  Record record;
  TrialContext context(make_state(record, storage));
  struct Spread : MetricReducer {
    std::vector<double> seen;
    void reset() override { seen.clear(); }
    Json per_slot_reduce() override { return Json(seen); }
    Json cross_slot_reduce(const std::vector<Json>& per_slot) override {
      return {{"batches_seen", per_slot.at(0).size()}, {"last", per_slot.at(0).back()}};
    }
  };
  struct Trial : SmallTrial {
    Trial(TrialContext& context, Record& record)
        : SmallTrial(context, record),
          spread(context.wrap_reducer(Spread(), "", true, false)),
          total(context.wrap_reducer(
              [](const std::vector<Json>& values) {
                std::int64_t sum = 0;
                for (const Json& value : values) sum += value.get<std::int64_t>();
                return Json(sum);
              },
              "records", false, true)) {}
    Metrics train_batch(Batch& batch, int64_t epoch, int64_t number) override {
      spread.seen.push_back(static_cast<double>(number));
      return SmallTrial::train_batch(batch, epoch, number);
    }
    Metrics evaluate_batch(Batch& batch) override {
      total.update(batch.size());
      return SmallTrial::evaluate_batch(batch);
    }
    Spread& spread;
    SimpleReducer& total;
  } trial(context, record);
  Trainer(trial, context).fit({.max_length = Batches(7), .reporting_period = Batches(5)});
  CHECK(record.metrics[0].second["batches_seen"] == 5);
  CHECK(record.metrics[1].second["batches_seen"] == 2);
  CHECK(record.metrics[1].second["last"] == 6);
  CHECK(record.metrics[2].second["records"] == 18);
}

TEST_CASE("batch metrics are combined as the trial defines, weighted by records") {
  Folder storage;
  Record record;
  TrialContext context(make_state(record, storage));
  struct Trial : SmallTrial {
    using SmallTrial::SmallTrial;
    Metrics evaluate_batch(Batch& batch) override {  // batches of 5, 5, 5 and 3 records
      const double size = static_cast<double>(batch.size());
      return {{"average", size}, {"sum", size}, {"max", size}, {"min", size}};
    }
    EvaluationReducer evaluation_reducer() override {
      return {{"average", Reducer::kAverage},
              {"sum", Reducer::kSum},
              {"max", Reducer::kMax},
              {"min", Reducer::kMin}};
    }
  } trial(context, record);
  const FitResult result = Trainer(trial, context).fit({.max_length = Batches(1)});
  CHECK(result.validation_metrics.at("average") == Approx((5.0 * 15 + 3 * 3) / 18));
  CHECK(result.validation_metrics.at("sum") == 18);
  CHECK(result.validation_metrics.at("max") == 5);
  CHECK(result.validation_metrics.at("min") == 3);
  CHECK_THROWS_WITH(EvaluationReducer({{"lost", Reducer::kSum}}).of({"loss"}),
                    Catch::Contains("it lacks loss") && Catch::Contains("no metric lost"));
}

TEST_CASE("a trial can evaluate the whole data set at once") {
  Folder storage;
  Record record;
  TrialContext context(make_state(record, storage));
  struct Trial : SmallTrial {
    Trial(TrialContext& context, Record& record) : SmallTrial(context, record), context(context) {}
    std::optional<Metrics> evaluate_full_dataset(const DataLoader& loader) override {
      std::int64_t records = 0;
      for (auto batches = context.iterate(loader); auto batch = batches.next();) records += batch->size();
      return Metrics{{"records", records}};
    }
    TrialContext& context;
  } trial(context, record);
  CHECK(Trainer(trial, context).fit({.max_length = Batches(1)}).validation_metrics.at("records") == 18);
}

class SmallManaged : public ManagedTrial<torch::nn::Sequential> {
 public:
  using ManagedTrial::ManagedTrial;
  DataLoader build_training_data_loader() override {
    return {small_data(), {.batch_size = 4, .shuffle = true}};
  }
  DataLoader build_validation_data_loader() override { return {small_data(), {.batch_size = 5}}; }
  torch::nn::Sequential build_model() override {
    torch::nn::Sequential model(torch::nn::Linear(6, 8), torch::nn::ReLU(), torch::nn::Dropout(0.3),
                                torch::nn::Linear(8, 3));
    reset_parameters(*model);
    return model;
  }
  std::unique_ptr<torch::optim::Optimizer> optimizer(torch::nn::Sequential& model) override {
    return std::make_unique<torch::optim::Adam>(model->parameters(),
                                                context_.get_hparam<double>("learning_rate"));
  }
  Metrics train_batch(Batch& batch, torch::nn::Sequential& model, int64_t, int64_t) override {
    const auto [data, target] = batch.unpack<2>();
    return {{"loss", torch::nll_loss(torch::log_softmax(model->forward(data), 1), target)},
            {"train_error", 0.5}};
  }
  Metrics evaluate_batch(Batch& batch, torch::nn::Sequential& model) override {
    const auto [data, target] = batch.unpack<2>();
    return {{"validation_loss", torch::nll_loss(torch::log_softmax(model->forward(data), 1), target)}};
  }
};

TEST_CASE("the managed style calls backward, zero_grad and step itself") {
  Folder storage;
  Record record;
  TrialContext context(make_state(record, storage));
  SmallManaged trial(context);
  Trainer(trial, context).fit({.max_length = Epochs(40), .validation_period = Epochs(20)});
  const auto loss = [&](std::size_t i) {
    return record.metrics.at(i).second.at("validation_loss").get<double>();
  };
  std::vector<double> losses;
  for (const auto& [event, metrics] : record.metrics) {
    if (event.starts_with("validation")) losses.push_back(metrics.at("validation_loss").get<double>());
  }
  (void)loss;
  REQUIRE(losses.size() == 2);
  CHECK(losses[1] < losses[0]);
  CHECK_THROWS_WITH(
      loss_of({{"error", 1.0}}),
      Catch::Contains("must return the metric \"loss\" as a tensor; it returns: error (a number)"));
}

TEST_CASE("a wrapped schedule follows its mode and resumes from a checkpoint") {
  Folder storage;
  const auto train = [&](std::int64_t batches, bool resume) {
    Record record;
    TrialContext context(make_state(record, storage));
    struct Trial : SmallTrial {
      Trial(TrialContext& context, Record& record)
          : SmallTrial(context, record),
            schedule(context.wrap_lr_scheduler(StepLR(optimizer(), {.step_size = 2, .gamma = 0.1}),
                                               LRStepMode::kEveryEpoch)) {}
      StepLR& schedule;
    } trial(context, record);
    FitOptions options{.max_length = Batches(batches)};
    if (resume) options.latest_checkpoint = "latest";
    Trainer(trial, context).fit(options);
    return trial.schedule.get_last_lr().at(0);
  };
  CHECK(train(9, false) == Approx(0.01));  // an epoch has 5 batches
  CHECK(train(10, true) == Approx(0.001));
  CHECK(train(20, true) == Approx(0.0001));
}

TEST_CASE("exact training gives the same bits for any split of shards and after any pause") {
  const auto state_with_shards = [](Record& record, const std::string& storage) {
    auto state = make_state(record, storage);
    state->gradients.exact = ShardPlan::make(4, 0, 1);
    return state;
  };
  struct Trial : SmallTrial {
    Trial(TrialContext& context, Record& record) : SmallTrial(context, record), context(context) {}
    DataLoader build_training_data_loader() override {
      return {small_data(), {.batch_size = context.get_per_slot_batch_size(), .shuffle = true}};
    }
    TrialContext& context;
  };
  Folder storage;
  Record whole;
  TrialContext context(state_with_shards(whole, storage));
  CHECK(context.get_per_slot_batch_size() == 1);
  Trial trial(context, whole);
  Trainer(trial, context).fit({.max_length = Batches(11), .reporting_period = Batches(3)});
  Folder other;
  Record first, second;
  first.preempt_at = 7;
  for (Record* record : {&first, &second}) {
    TrialContext part(state_with_shards(*record, other));
    Trial again(part, *record);
    Trainer(again, part)
        .fit({.max_length = Batches(11), .reporting_period = Batches(3), .latest_checkpoint = "latest"});
    if (record == &second) CHECK(same_bits(again.model()->parameters(), trial.model()->parameters()));
  }
  auto metrics = first.metrics;
  metrics.insert(metrics.end(), second.metrics.begin(), second.metrics.end());
  CHECK(metrics == whole.metrics);
}

TEST_CASE("mixed precision computes in bfloat16 inside the trial and keeps weights and gradients in float") {
  Folder storage;
  Record record;
  TrialContext context(make_state(record, storage));
  context.use_amp({.dtype = torch::kBFloat16});
  struct Trial : SmallTrial {
    using SmallTrial::SmallTrial;
    Metrics train_batch(Batch& batch, int64_t epoch, int64_t number) override {
      CHECK(model()->forward(batch.data()).scalar_type() == torch::kBFloat16);
      return SmallTrial::train_batch(batch, epoch, number);
    }
  } trial(context, record);
  Trainer(trial, context).fit({.max_length = Batches(5)});
  for (const torch::Tensor& parameter : trial.model()->parameters())
    CHECK(parameter.scalar_type() == torch::kFloat);
}

TEST_CASE("errors of a trial are named") {
  Folder storage;
  const auto run = [&](auto train_batch, bool exact = false) {
    Record record;
    auto state = make_state(record, storage);
    if (exact) state->gradients.exact = ShardPlan::make(4, 0, 1);
    TrialContext context(std::move(state));
    struct Trial : SmallTrial {
      Trial(TrialContext& context, Record& record, std::function<Metrics(Trial&, TrialContext&, Batch&)> body)
          : SmallTrial(context, record), context(context), body(std::move(body)) {}
      Metrics train_batch(Batch& batch, int64_t, int64_t) override { return body(*this, context, batch); }
      TrialContext& context;
      std::function<Metrics(Trial&, TrialContext&, Batch&)> body;
    } trial(context, record, train_batch);
    Trainer(trial, context).fit({.max_length = Batches(3)});
  };
  CHECK_THROWS_WITH(run([](auto&, auto&, Batch&) {
                      return Metrics{{"loss", std::nan("")}};
                    }),
                    Catch::Contains("the loss is nan; lower the learning rate"));
  CHECK_THROWS_WITH(run([](auto& trial, TrialContext& context, Batch& batch) {
                      context.backward(trial.model()->forward(batch.data()));
                      return Metrics();
                    }),
                    Catch::Contains("the loss must be one number, not a tensor of shape [4, 3]"));
  CHECK_THROWS_WITH(run([](auto&, TrialContext& context, Batch&) {
                      context.backward(torch::zeros({}));
                      return Metrics();
                    }),
                    Catch::Contains("does not depend on any parameter"));
  CHECK_THROWS_WITH(run([](auto&, auto&, Batch& batch) {
                      return Metrics{{"loss", batch.data()}};
                    }),
                    Catch::Contains("metric \"loss\" must be one number, not a tensor of shape [4, 6]"));
  for (const int steps_of_second_shard : {0, 2}) {
    CHECK_THROWS_WITH(run(
                          [&, calls = 0](auto& trial, TrialContext& context, Batch& batch) mutable {
                            const torch::Tensor loss = trial.model()->forward(batch.data()).sum();
                            for (int i = calls++ == 1 ? steps_of_second_shard : 1; i > 0; --i) {
                              context.backward(loss, {.retain_graph = true});
                              context.step_optimizer(trial.optimizer());
                            }
                            return Metrics{{"loss", loss}};
                          },
                          /*exact=*/true),
                      Catch::Contains("all of these calls step an optimizer once"));
  }
}

}  // namespace
}  // namespace det
