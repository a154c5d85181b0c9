// Every example of the API guide trains and behaves as the guide describes.
#include <det/det.h>

#include "guides/checkpoints.h"
#include "guides/data.h"
#include "guides/features.h"
#include "guides/optimizers.h"

// The guide's programs, with their mains renamed.
#define main train_fit_main
#include "guides/train_fit.cpp"
#undef main
#define main train_init_main
#include "guides/train_init.cpp"
#undef main
#define main train_anywhere_main
#include "guides/train_anywhere.cpp"
#undef main

// Catch2 must follow LibTorch: both define CHECK.
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <numeric>

#include "common/base/files.h"
#include "test_paths.h"

namespace {

/// A folder that is the working directory during its lifetime.
class Folder {
 public:
  Folder() : before_(std::filesystem::current_path()) { std::filesystem::current_path(path()); }
  ~Folder() { std::filesystem::current_path(before_); }
  const std::string& path() const { return directory_.path(); }

 private:
  det::TemporaryDirectory directory_ = det::TemporaryDirectory::create().value();
  std::filesystem::path before_;
};

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  REQUIRE(det::write_file_atomic(path, text).has_value());
}

std::vector<std::string> files_below(const std::string& directory, const std::string& part) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.path().filename().string().find(part) != std::string::npos) files.push_back(entry.path());
  }
  return files;
}

/// Records the losses of an example and exposes its optimizer.
template <typename Example>
class Watched : public Example {
 public:
  using Example::Example;
  det::Metrics train_batch(det::Batch& batch, int64_t epoch_idx, int64_t batch_idx) override {
    det::Metrics metrics = Example::train_batch(batch, epoch_idx, batch_idx);
    losses.push_back(det::loss_of(metrics).template item<double>());
    return metrics;
  }
  std::vector<double> losses;
};

double learning_rate(torch::optim::Optimizer& optimizer) {
  return static_cast<torch::optim::SGDOptions&>(optimizer.param_groups().at(0).options()).lr();
}

det::InitOptions in_folder(const Folder& folder, det::Json data = nullptr) {
  det::InitOptions init{.hparams = det::Json{{"global_batch_size", 8}, {"layers", 2}, {"workers", 2}},
                        .checkpoint_dir = folder.path() + "/checkpoints"};
  if (!data.is_null()) init.exp_conf = det::Json{{"data", std::move(data)}};
  return init;
}

/// Trains an example, then passes it to `look`.
template <typename Example>
det::FitResult train(const det::FitOptions& options, const det::InitOptions& init,
                     const std::function<void(Example&, det::TrialContext&)>& look = nullptr) {
  det::FitResult result;
  const int code = det::run(
      [&](det::TrialContext& context) {
        Example trial(context);
        result = det::Trainer(trial, context).fit(options);
        if (look) look(trial, context);
      },
      init);
  REQUIRE(code == 0);
  return result;
}

template <typename Example>
void check_that_it_learns(const det::FitOptions& options, const det::InitOptions& init) {
  train<Watched<Example>>(options, init, [](auto& trial, det::TrialContext&) {
    REQUIRE(trial.losses.size() >= 40);
    const auto mean = [&](std::size_t from) {
      return std::accumulate(trial.losses.begin() + from, trial.losses.begin() + from + 8, 0.0) / 8;
    };
    CHECK(mean(trial.losses.size() - 8) < 0.95 * mean(0));
  });
}

TEST_CASE("the skeleton learns, and its checkpoint can be used") {
  Folder folder;
  check_that_it_learns<MyTrial>({.max_length = det::Epochs(6)}, in_folder(folder));
  const det::FitResult result = train<MyTrial>({.max_length = det::Epochs(2)}, in_folder(folder));
  const det::TensorDataset data = made_up_data();
  std::vector<std::int64_t> all(64);
  std::iota(all.begin(), all.end(), 0);
  const det::Batch batch = data.get_batch(all);

  const double loss =
      det::loss_of({{"loss", *evaluate(result.checkpoint, batch).entries().at(0).second.tensor()}})
          .item<double>();
  CHECK(loss == Approx(result.validation_metrics.at("validation_loss")));
  const torch::Tensor correct = predict(result.checkpoint, batch.data()) == batch.target();
  CHECK(correct.sum().item<std::int64_t>() > 40);

  export_weights(result.checkpoint, folder.path() + "/model.safetensors");
  torch::nn::Linear loaded(4, 2), wanted(4, 2);
  import_weights(folder.path() + "/model.safetensors", *loaded);
  det::load_model(result.checkpoint, *wanted);
  CHECK(torch::equal(loaded->weight, wanted->weight));
}

TEST_CASE("two models with an optimizer each learn together") {
  Folder folder;
  check_that_it_learns<PairTrial>({.max_length = det::Epochs(8)}, in_folder(folder));
}

TEST_CASE("a trial's own optimizer and one with a closure learn") {
  Folder folder;
  check_that_it_learns<LionTrial>({.max_length = det::Epochs(8)}, in_folder(folder));
  check_that_it_learns<ClosureTrial>({.max_length = det::Epochs(24)}, in_folder(folder));
}

TEST_CASE("learning rates change as the guide describes") {
  Folder folder;
  train<ScheduledTrial>({.max_length = det::Epochs(4)}, in_folder(folder),
                        [](auto& trial, auto&) { CHECK(trial.learning_rates().at(0) == Approx(0.001)); });
  struct Manual : ManualTrial {
    using ManualTrial::ManualTrial;
    double rate() { return learning_rate(optimizer_); }
  };
  train<Manual>({.max_length = det::Batches(9)}, in_folder(folder),
                [](auto& t, auto&) { CHECK(t.rate() == 0.1); });
  train<Manual>({.max_length = det::Batches(12)}, in_folder(folder),
                [](auto& t, auto&) { CHECK(t.rate() == Approx(0.05)); });
  struct Warm : WarmTrial {
    using WarmTrial::WarmTrial;
    double rate() { return learning_rate(optimizer_); }
  };
  train<Warm>({.max_length = det::Batches(1)}, in_folder(folder),
              [](auto& t, auto&) { CHECK(t.rate() == Approx(0.01 + 0.09 / 5)); });
  train<Warm>({.max_length = det::Batches(15)}, in_folder(folder),
              [](auto& t, auto&) { CHECK(t.rate() == Approx(0.05)); });
  struct Flat : PlateauTrial {
    using PlateauTrial::PlateauTrial;
    det::Metrics evaluate_batch(det::Batch&) override { return {{"validation_loss", 1.0}}; }
    double rate() { return learning_rate(optimizer_); }
  };
  train<Flat>({.max_length = det::Batches(3), .validation_period = det::Batches(1)}, in_folder(folder),
              [](auto& t, auto&) { CHECK(t.rate() == Approx(0.05)); });
}

TEST_CASE("clipped gradients limit the step") {
  Folder folder;
  struct Clipped : ClippingTrial {
    explicit Clipped(det::TrialContext& context) : ClippingTrial(context) {
      for (const torch::Tensor& parameter : model_->parameters())
        before.push_back(parameter.detach().clone());
    }
    double moved() const {
      double sum = 0;
      for (std::size_t i = 0; i < before.size(); ++i) {
        sum += (model_->parameters()[i] - before[i]).pow(2).sum().item<double>();
      }
      return std::sqrt(sum);
    }
    std::vector<torch::Tensor> before;
  };
  train<Clipped>({.max_length = det::Batches(1)}, in_folder(folder), [](Clipped& trial, auto&) {
    CHECK(trial.moved() == Approx(0.1 * 0.01).epsilon(0.01));  // the learning rate times max_norm
  });
}

TEST_CASE("both ways to mixed precision learn") {
  Folder folder;
  check_that_it_learns<AmpTrial>({.max_length = det::Epochs(6)}, in_folder(folder));
  check_that_it_learns<ManualAmpTrial>({.max_length = det::Epochs(6)}, in_folder(folder));
}

TEST_CASE("batches are aggregated when the program requests it") {
  Folder folder;
  det::InitOptions init = in_folder(folder);
  init.aggregation_frequency = 4;
  struct Counting : MyTrial {
    using MyTrial::MyTrial;
    det::Metrics train_batch(det::Batch& batch, int64_t epoch_idx, int64_t batch_idx) override {
      const torch::Tensor before = model_->weight.detach().clone();
      det::Metrics metrics = MyTrial::train_batch(batch, epoch_idx, batch_idx);
      steps += !torch::equal(before, model_->weight);
      return metrics;
    }
    int steps = 0;
  };
  train<Counting>({.max_length = det::Batches(12)}, init, [](Counting& trial, det::TrialContext& context) {
    CHECK(context.aggregation().frequency == 4);
    CHECK(trial.steps == 3);
  });
}

TEST_CASE("metrics other than means have the right values") {
  Folder folder;
  std::vector<std::int64_t> all(64);
  std::iota(all.begin(), all.end(), 0);
  const det::Batch batch = made_up_data().get_batch(all);

  auto result = train<ReducingTrial>({.max_length = det::Epochs(3)}, in_folder(folder));
  torch::Tensor predicted = predict(result.checkpoint, batch.data());
  const double hits = ((predicted == 1) & (batch.target() == 1)).sum().item<double>();
  const double errors = (predicted != batch.target()).sum().item<double>();
  CHECK(result.validation_metrics.at("f1") == Approx(2 * hits / (2 * hits + errors)));
  CHECK(result.validation_metrics.at("worst_loss") > result.validation_metrics.at("validation_loss"));

  result = train<SummingTrial>({.max_length = det::Epochs(3)}, in_folder(folder));
  predicted = predict(result.checkpoint, batch.data());
  CHECK(result.validation_metrics.at("mistakes") == (predicted != batch.target()).sum().item<double>());

  result = train<WholeSetTrial>({.max_length = det::Epochs(3)}, in_folder(folder));
  torch::nn::Linear model(4, 2);
  det::load_model(result.checkpoint, *model);
  const double median = model(batch.data()).select(1, 1).median().item<double>();
  CHECK(result.validation_metrics.at("median_score") == Approx(median));
}

TEST_CASE("a callback ends a trial that is stuck") {
  Folder folder;
  struct Stuck : StoppingTrial {
    using StoppingTrial::StoppingTrial;
    det::Metrics evaluate_batch(det::Batch&) override { return {{"validation_loss", 1.0}}; }
  };
  const auto result = train<Stuck>({.max_length = det::Batches(100), .validation_period = det::Batches(2)},
                                   in_folder(folder));
  CHECK(result.reason == det::FitResult::Reason::kStopRequested);
  CHECK(result.batches_trained == 6);
}

TEST_CASE("traces and TensorBoard files are written") {
  Folder folder;
  std::string board;
  train<ProfiledTrial>({.max_length = det::Batches(10)}, in_folder(folder),
                       [&](auto&, det::TrialContext& context) { board = context.get_tensorboard_path(); });
  CHECK(files_below(board, ".pt.trace.json").size() == 2);
  train<BoardTrial>({.max_length = det::Batches(11)}, in_folder(folder));
  std::string events;
  for (const std::string& file : files_below(board, "tfevents")) events += det::read_file(file).value();
  CHECK(events.find("weights/norm") != std::string::npos);
  CHECK(events.find("Determined/loss") != std::string::npos);
  CHECK(events.find("Determined/val_validation_loss") != std::string::npos);
}

TEST_CASE("media of a validation are files without a cluster, and those of the check before are not") {
  Folder folder;
  train<MediaTrial>({.max_length = det::Batches(4), .validation_period = det::Batches(2)}, in_folder(folder));
  const auto files = files_below(folder.path(), "");
  const auto count = [&](const std::string& ending) {
    return std::count_if(files.begin(), files.end(), [&](const std::string& file) {
      return file.find("/media/") != std::string::npos && file.ends_with(ending);
    });
  };
  for (const char* step : {"2", "4"}) {
    INFO(step);
    CHECK(count(std::string("inputs/") + step + ".png") == 1);
    CHECK(count(std::string("weights/") + step + ".json") == 1);
    CHECK(count(std::string("notes/") + step + ".txt") == 1);
    CHECK(count(std::string("confusion/") + step + ".json") == 1);
    CHECK(count(std::string("predictions/") + step + "-predictions.csv") == 1);
  }
  CHECK(count(".png") == 2);
}

TEST_CASE("invalid hyperparameters end a trial without an error") {
  Folder folder;
  det::InitOptions init = in_folder(folder);
  bool reached = false;
  const auto body = [&](det::TrialContext& context) {
    CheckedTrial trial(context);
    reached = true;
  };
  CHECK(det::run(body, init) == 0);
  CHECK(reached);
  (*init.hparams)["layers"] = 9;
  reached = false;
  CHECK(det::run(body, init) == 0);
  CHECK_FALSE(reached);
}

TEST_CASE("the managed style learns") {
  Folder folder;
  det::InitOptions init = in_folder(folder);
  init.hparams = det::Json{{"global_batch_size", 8}, {"width", 16}, {"learning_rate", 0.2}};
  const auto result = train<ManagedExample>({.max_length = det::Epochs(20)}, init);
  CHECK(result.validation_metrics.at("validation_error") < 0.3);
}

TEST_CASE("data is prepared before training, once per place where the guide requires it") {
  Folder folder;
  write(folder.path() + "/train.bin", "hello");
  const det::Json data{{"dir", folder.path()},
                       {"mirrors", det::Json::array()},
                       {"sha256", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}};
  const auto exists = [](auto& trial, auto&) { CHECK(det::path_exists(trial.file())); };
  train<DownloadingTrial>({.max_length = det::Batches(1)}, in_folder(folder, data),
                          [](auto& trial, auto&) { CHECK(det::path_exists(trial.path())); });
  train<PerRankTrial>({.max_length = det::Batches(1)}, in_folder(folder, data), exists);
  train<PerMachineTrial>({.max_length = det::Batches(1)}, in_folder(folder, data), exists);
  CHECK(det::path_exists(folder.path() + "/rank-0"));
}

/// A noise image, dark or bright.
std::string picture(bool bright, std::int64_t seed) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed));
  torch::Tensor bytes =
      torch::randint(bright ? 130 : 0, bright ? 255 : 120, {36 * 32 * 3}, generator, torch::kLong);
  bytes = bytes.to(torch::kByte);
  return "P6\n32 36\n255\n" + std::string(static_cast<const char*>(bytes.data_ptr()), 36 * 32 * 3);
}

TEST_CASE("a trial learns from a folder of images") {
  Folder folder;
  for (int i = 0; i < 32; ++i) {
    const bool bright = i % 2 == 0;
    const std::string name = std::string(bright ? "bright" : "dark") + "/" + std::to_string(i) + ".ppm";
    write(folder.path() + (i < 24 ? "/train/" : "/val/") + name, picture(bright, i));
  }
  const auto result = train<FolderTrial>({.max_length = det::Epochs(8)},
                                         in_folder(folder, det::Json{{"root", folder.path()}}));
  CHECK(result.batches_trained == 8 * 3);
  CHECK(result.validation_metrics.at("accuracy") == 1);
}

TEST_CASE("batches can be dictionaries of any values") {
  Folder folder;
  check_that_it_learns<DictTrial>({.max_length = det::Epochs(10)}, in_folder(folder));
}

std::vector<std::vector<std::int64_t>> batches_of(const det::AnyBatchSampler& sampler, std::int64_t count) {
  std::vector<std::vector<std::int64_t>> batches;
  for (std::int64_t i = 0; i < count; ++i) batches.push_back(sampler->at(0, i));
  return batches;
}

TEST_CASE("a custom sampler is sharded, shuffled, repeated and skipped") {
  const auto sampler = [](Place place, std::int64_t skip) {
    return make_batch_sampler(det::SequentialSampler(12), /*training=*/true, /*shuffle_seed=*/3, place, 2,
                              skip);
  };
  std::vector<std::int64_t> seen;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    for (const auto& batch : batches_of(sampler({2, rank}, 0), 3))
      seen.insert(seen.end(), batch.begin(), batch.end());
  }
  CHECK_FALSE(std::is_sorted(seen.begin(), seen.end()));
  std::sort(seen.begin(), seen.end());
  std::vector<std::int64_t> all(12);
  std::iota(all.begin(), all.end(), 0);
  CHECK(seen == all);
  const auto whole = batches_of(sampler({2, 1}, 0), 9), rest = batches_of(sampler({2, 1}, 4), 5);
  CHECK(std::vector(whole.begin() + 4, whole.end()) == rest);
  const auto validation = make_batch_sampler(det::SequentialSampler(5), false, 3, {2, 1}, 2, 0);
  CHECK(validation->count() == 1);
  CHECK(validation->at(0, 0) == std::vector<std::int64_t>{1, 3});
}

template <typename Example>
void check_that_a_pause_changes_nothing() {
  const auto weights = [](const std::string& checkpoint) {
    torch::nn::Linear model(4, 2);
    det::load_model(checkpoint, *model);
    return model->weight.detach().clone();
  };
  Folder whole, paused;
  const auto once = train<Example>({.max_length = det::Batches(11)}, in_folder(whole));
  train<Example>({.max_length = det::Batches(5)}, in_folder(paused));
  const auto resumed =
      train<Example>({.max_length = det::Batches(11), .latest_checkpoint = "latest"}, in_folder(paused));
  CHECK(resumed.batches_trained == 11);
  CHECK(torch::equal(weights(once.checkpoint), weights(resumed.checkpoint)));
}

TEST_CASE("trials with a custom sampler resume at their position") {
  check_that_a_pause_changes_nothing<MyTrial>();
  check_that_a_pause_changes_nothing<OwnOrderTrial>();
  check_that_a_pause_changes_nothing<StreamTrial>();
}

TEST_CASE("the programs of the guide train") {
  const auto checkpoints = [] {
    std::size_t count = 0;
    for (const auto& file : files_below("checkpoints", "state_dict.pth")) count += det::path_exists(file);
    return count;
  };
  {
    Folder folder;
    CHECK(train_fit_main() == 0);
    CHECK(checkpoints() == 4);  // validations at 5, 10, 15 and 16; every tenth batch is among them
  }
  {
    Folder folder;
    CHECK(train_init_main() == 0);
    CHECK(checkpoints() == 1);
  }
  Folder folder;
  write(folder.path() + "/const.yaml",
        det::read_file(det::source_path("/tests/harness/guides/const.yaml")).value());
  CHECK(train_anywhere_main() == 0);
  const std::size_t after_first = checkpoints();
  CHECK(after_first >= 1);
  CHECK(train_anywhere_main() == 0);  // starts from the final checkpoint, so nothing is left to train
  CHECK(checkpoints() == after_first);
}

}  // namespace
