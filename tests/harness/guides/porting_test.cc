// The porting guide's start and end compute the same: the hand-written script and the trial made of it.
#include <det/det.h>

// The original script, with its main renamed (main.cpp's is porting_original_main).
#define main porting_train_main
#include "guides/porting/train.cpp"
#undef main

// Catch2 must follow LibTorch: both define CHECK.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "common/base/files.h"
#include "common/base/text.h"
#include "test_paths.h"

int porting_original_main(int argc, char** argv);

namespace {

void write_idx(const std::string& path, const torch::Tensor& data) {
  std::string bytes{0, 0, 8, static_cast<char>(data.dim())};
  for (const std::int64_t size : data.sizes()) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift);
  }
  bytes.append(static_cast<const char*>(data.data_ptr()), static_cast<std::size_t>(data.numel()));
  REQUIRE(det::write_file_atomic(path, bytes).has_value());
}

/// Noise with a bright bar at a position that encodes the label.
void write_images(const std::string& prefix, std::int64_t count, std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  torch::Tensor labels = torch::randint(0, 10, {count}, generator, torch::kLong);
  torch::Tensor images = torch::randint(0, 100, {count, 28, 28}, generator, torch::kLong).to(torch::kByte);
  for (std::int64_t i = 0; i < count; ++i)
    images[i].narrow(0, 2 * labels[i].item<std::int64_t>() + 4, 2).fill_(220);
  write_idx(prefix + "-images-idx3-ubyte", images);
  write_idx(prefix + "-labels-idx1-ubyte", labels.to(torch::kByte));
}

/// The working directory that the guide describes, with small data in it.
class Workplace {
 public:
  Workplace() : before_(std::filesystem::current_path()) {
    write_images(path() + "/train", 512, 1);
    write_images(path() + "/t10k", 130, 2);
    std::string config = det::read_file(det::source_path("/tests/harness/guides/porting/const.yaml")).value();
    const std::string line = "dir: data ";
    REQUIRE(config.find(line) != std::string::npos);
    config.replace(config.find(line), line.size(), "dir: " + path() + " ");
    REQUIRE(det::write_file_atomic(path() + "/const.yaml", config).has_value());
    std::filesystem::current_path(path());
  }
  ~Workplace() { std::filesystem::current_path(before_); }
  const std::string& path() const { return directory_.path(); }

 private:
  det::TemporaryDirectory directory_ = det::TemporaryDirectory::create().value();
  std::filesystem::path before_;
};

/// Captures std::cout during its lifetime, with numbers in full precision.
class Captured {
 public:
  Captured() : before_(std::cout.rdbuf(text_.rdbuf())), precision_(std::cout.precision(12)) {}
  ~Captured() {
    std::cout.rdbuf(before_);
    std::cout.precision(precision_);
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
  std::streamsize precision_;
};

struct ScriptRun {
  std::vector<double> losses;  ///< one per batch
  double validation_loss = 0, accuracy = 0;
};

ScriptRun run_script(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  Captured output;
  REQUIRE(porting_original_main(static_cast<int>(argv.size()), argv.data()) == 0);
  ScriptRun run;
  std::istringstream lines(output.text());
  for (std::string line, word; std::getline(lines, line);) {
    std::istringstream words(line);
    double loss = 0;
    if (line.starts_with("epoch")) {
      for (int i = 0; i < 5; ++i) words >> word;
      REQUIRE(words >> loss);
      run.losses.push_back(loss);
    } else {
      REQUIRE(words >> word >> word >> run.validation_loss >> word >> run.accuracy);
    }
  }
  return run;
}

/// Without shuffling, like the script with `--no-shuffle`.
class RecordingTrial : public ImagesTrial {
 public:
  RecordingTrial(det::TrialContext& context, std::vector<double>& losses)
      : ImagesTrial(context), losses_(losses) {}
  det::DataLoader build_training_data_loader() override {
    return {images("train"), {.batch_size = context_.get_per_slot_batch_size()}};
  }
  det::Metrics train_batch(det::Batch& batch, int64_t epoch_idx, int64_t batch_idx) override {
    det::Metrics metrics = ImagesTrial::train_batch(batch, epoch_idx, batch_idx);
    losses_.push_back(det::loss_of(metrics).item<double>());
    return metrics;
  }

 private:
  std::vector<double>& losses_;
};

TEST_CASE("the ported trial computes the same losses as the script") {
  Workplace place;
  const ScriptRun script = run_script({"main", "--data", place.path(), "--save", place.path() + "/model.pt",
                                       "--no-shuffle", "--epochs", "2", "--log-interval", "1"});
  std::vector<double> losses;
  det::FitResult result;
  const auto body = [&](det::TrialContext& context) {
    RecordingTrial trial(context, losses);
    result =
        det::Trainer(trial, context).fit({.max_length = det::Epochs(2), .validation_period = det::Epochs(1)});
  };
  REQUIRE(det::run(body, {.config_file = "const.yaml"}) == 0);

  REQUIRE(script.losses.size() == 32);
  REQUIRE(losses.size() == 32);
  for (std::size_t i = 0; i < 20; ++i) {  // the second epoch begins at batch 16, with a smaller learning rate
    INFO("batch " << i);
    CHECK(losses[i] == Approx(script.losses[i]).epsilon(1e-4));
  }
  CHECK(losses[31] < 0.7 * losses[0]);
  CHECK(result.validation_metrics.at("validation_loss") == Approx(script.validation_loss).epsilon(1e-2));
  CHECK(result.validation_metrics.at("accuracy") == Approx(script.accuracy).margin(0.02));
  CHECK(det::path_exists(place.path() + "/model.pt"));
  CHECK(det::path_exists(result.checkpoint + "/state_dict.pth"));
}

TEST_CASE("the ported program tries one batch of everything, then trains") {
  Workplace place;
  std::string name = "train", option = "--test";
  char* argv[] = {name.data(), option.data()};
  const auto checkpoints = [] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("checkpoints")) {
      count += std::filesystem::exists(entry.path() / "state_dict.pth");
    }
    return count;
  };
  REQUIRE(porting_train_main(2, argv) == 0);
  CHECK(checkpoints() == 1);
  REQUIRE(porting_train_main(1, argv) == 0);
  CHECK(checkpoints() > 1);
}

}  // namespace
