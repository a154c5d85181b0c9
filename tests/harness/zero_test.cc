// `optimizations.zero: 1`: optimizer state divided over the ranks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/text.h"

namespace det {
namespace {

namespace fs = std::filesystem;

/// The last lines of the ranks.
struct Result {
  std::string weights;         ///< digest, equal on all ranks
  std::int64_t bytes = 0;      ///< most optimizer state of a rank
  std::int64_t all_bytes = 0;  ///< sum over the ranks
  std::int64_t micros = 0;     ///< of a batch, longest
};

struct Training {
  std::string storage;
  int ranks = 4, zero = 1;
  std::string optimizer = "AdamW";
  int batches = 12, width = 24;
  bool replaces = false;  ///< the parameters get other memory in batch 5
  std::string limited;    ///< the rank that cannot write files; "" for none

  ProcessResult start() const {
    std::vector<std::string> argv{DET_LAUNCH, "--nproc-per-node", std::to_string(ranks), "--"};
    if (!limited.empty()) {
      const std::string limit = "[ $RANK = " + limited + " ] && trap '' XFSZ && ulimit -f 0; exec \"$@\"";
      argv.insert(argv.end(), {"sh", "-c", limit, "sh"});
    }
    argv.insert(argv.end(), {DET_ZERO_TRIAL, storage, std::to_string(zero), optimizer,
                             std::to_string(batches), std::to_string(width)});
    if (replaces) argv.insert(argv.end(), {"4", "replace"});
    const ProcessOptions options{.argv = argv, .env = environment_with({"OMP_NUM_THREADS=1"}), .cwd = ""};
    return run_process(options, {.timeout = std::chrono::seconds(120)}).value();
  }
  Result run() const {
    const ProcessResult ended = start();
    INFO(ended.out << ended.err);
    REQUIRE(ended.ok());
    Result result;
    int found = 0;
    for (const std::string& line : split(ended.out, '\n')) {
      const std::size_t at = line.find("rank ");
      if (at == line.npos) continue;
      std::istringstream words(line.substr(at + 5));
      std::string weights;
      std::int64_t bytes = 0, micros = 0;
      words >> weights >> bytes >> micros;
      CHECK((found == 0 || weights == result.weights));
      result.weights = weights, ++found;
      result.bytes = std::max(result.bytes, bytes), result.all_bytes += bytes;
      result.micros = std::max(result.micros, micros);
    }
    CHECK(found == ranks);
    return result;
  }
};

/// A new storage with the newest checkpoint of another one.
void copy_newest(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive);
}

std::size_t count_files(const std::string& storage, const std::string& prefix) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(storage))
    count += entry.path().filename().string().starts_with(prefix);
  return count;
}

TEST_CASE("four ranks with divided optimizer state train to the same bits as with whole state") {
  const std::string optimizer = GENERATE("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax",
                                         "NAdam", "RAdam", "ASGD", "Rprop");
  const auto whole = TemporaryDirectory::create().value(), divided = TemporaryDirectory::create().value();
  const Result expected = Training{.storage = whole.path(), .zero = 0, .optimizer = optimizer}.run();
  const Result result = Training{.storage = divided.path(), .zero = 1, .optimizer = optimizer}.run();
  INFO(optimizer);
  CHECK(result.weights == expected.weights);
  CHECK(result.all_bytes == expected.bytes);
}

TEST_CASE("a rank of four keeps at most 0.27 of the optimizer state") {
  const auto whole = TemporaryDirectory::create().value(), divided = TemporaryDirectory::create().value();
  const Result expected = Training{.storage = whole.path(), .zero = 0, .batches = 2, .width = 128}.run();
  const Result result = Training{.storage = divided.path(), .zero = 1, .batches = 2, .width = 128}.run();
  INFO(result.bytes << " of " << expected.bytes << " bytes");
  CHECK(static_cast<double>(result.bytes) <= 0.27 * static_cast<double>(expected.bytes));
}

TEST_CASE("training with divided state resumes exactly, and every rank writes its part") {
  const auto one = TemporaryDirectory::create().value(), two = TemporaryDirectory::create().value();
  const Result expected = Training{.storage = one.path()}.run();
  (void)Training{.storage = two.path(), .batches = 8}.run();
  CHECK(count_files(two.path(), "optimizer_state_") == 8);  // two checkpoints
  CHECK(Training{.storage = two.path()}.run().weights == expected.weights);
}

TEST_CASE("a checkpoint that lacks the part of a rank is passed over for the one before it") {
  const auto one = TemporaryDirectory::create().value(), two = TemporaryDirectory::create().value();
  const Result expected = Training{.storage = one.path()}.run();
  (void)Training{.storage = two.path(), .batches = 8}.run();
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(two.path())) {
    const auto state = read_file(entry.path().string() + "/metadata.json");
    if (state && state->find("\"steps_completed\": 8") != std::string::npos) newest = entry.path();
  }
  REQUIRE(fs::remove(newest / "optimizer_state_2_of_4.pth"));
  const ProcessResult ended = Training{.storage = two.path()}.start();
  CHECK_THAT(ended.err, Catch::Contains("optimizer_state_2_of_4.pth is missing"));
  CHECK_THAT(ended.out, Catch::Contains(", batch 4") && Catch::Contains("rank " + expected.weights));
}

TEST_CASE("a checkpoint with divided state loads into any number of ranks, divided or not") {
  const auto source = TemporaryDirectory::create().value();
  const std::string optimizer = GENERATE("AdamW", "Adagrad");
  (void)Training{.storage = source.path(), .optimizer = optimizer, .batches = 8}.run();
  for (const int ranks : {1, 2, 3, 4}) {
    const auto whole = TemporaryDirectory::create().value(), divided = TemporaryDirectory::create().value();
    copy_newest(source.path(), whole.path());
    copy_newest(source.path(), divided.path());
    const Training training{.ranks = ranks, .optimizer = optimizer};
    Training with = training, without = training;
    with.storage = divided.path(), with.zero = 1;
    without.storage = whole.path(), without.zero = 0;
    INFO(optimizer << " on " << ranks);
    CHECK(with.run().weights == without.run().weights);
  }
}

TEST_CASE("a checkpoint with whole state loads into ranks with divided state") {
  const auto one = TemporaryDirectory::create().value(), two = TemporaryDirectory::create().value();
  const Result expected = Training{.storage = one.path(), .zero = 0}.run();
  (void)Training{.storage = two.path(), .zero = 0, .batches = 8}.run();
  CHECK(Training{.storage = two.path(), .zero = 1}.run().weights == expected.weights);
}

TEST_CASE("parameters that get other memory go on being trained") {
  const auto one = TemporaryDirectory::create().value(), two = TemporaryDirectory::create().value();
  const Result expected = Training{.storage = one.path(), .replaces = false}.run();
  CHECK(Training{.storage = two.path(), .replaces = true}.run().weights == expected.weights);
}

TEST_CASE("a rank that cannot write its part ends the training soon, with the reason") {
  const auto storage = TemporaryDirectory::create().value();
  const ProcessResult ended = Training{.storage = storage.path(), .limited = "1"}.start();
  CHECK_FALSE(ended.timed_out);
  CHECK_FALSE(ended.ok());
  CHECK_THAT(ended.err, Catch::Contains("optimizer_state_1_of_4.pth: File too large"));
}

TEST_CASE("an optimizer whose step reads several elements is refused with the reason") {
  const auto storage = TemporaryDirectory::create().value();
  const ProcessResult ended = Training{.storage = storage.path(), .ranks = 1, .optimizer = "LBFGS"}.start();
  CHECK_FALSE(ended.ok());
  CHECK_THAT(ended.err,
             Catch::Contains("the step of torch::optim::LBFGS reads more than one element at a time; "
                             "choose another optimizer, such as AdamW, or set zero: 0"));
}

}  // namespace
}  // namespace det
