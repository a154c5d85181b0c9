// `reproducibility: exact`: the final parameters are bit-identical on one, two and four processes, also when
// a trial is killed at random points and continues with another number of processes.
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/random.h"
#include "common/base/text.h"
#include "common/base/wait.h"

namespace det {
namespace {

ProcessOptions program(const std::string& storage, int processes, const std::string& mode = "exact",
                       int length = 60) {
  return {.argv = {DET_LAUNCH, "--nproc-per-node", std::to_string(processes), "--", DET_EXACT_TRIAL, storage,
                   mode, std::to_string(length)},
          .env = environment_with({"OMP_NUM_THREADS=1"}),
          .cwd = ""};
}

/// Trains to the end. The digest must be equal on all processes.
std::string digest_at_end(const std::string& storage, int processes, const std::string& mode = "exact") {
  const ProcessResult result =
      run_process(program(storage, processes, mode), {.timeout = std::chrono::seconds(120)}).value();
  INFO(result.err);
  REQUIRE(result.ok());
  std::vector<std::string> digests;
  for (std::size_t at = 0; (at = result.out.find("digest ", at)) != std::string::npos; ++at) {
    digests.push_back(result.out.substr(at + 7, 64));
  }
  REQUIRE(digests.size() == static_cast<std::size_t>(processes));
  CHECK(digests == std::vector<std::string>(digests.size(), digests[0]));
  return digests[0];
}

std::size_t checkpoints_in(const std::string& storage) {
  std::size_t count = 0;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(storage, absent))
    count += entry.path().extension().empty();
  return count;
}

/// Kills all processes some time after the next checkpoint. Returns false if the training ended first.
bool kill_once(const std::string& storage, int processes, Random& random) {
  const std::size_t enough = checkpoints_in(storage) + random.below(3);
  ProcessOptions options = program(storage, processes);
  options.out = options.err = Stream::null();
  auto child = Child::spawn(options).value();
  bool ended = false;
  REQUIRE(wait_until(
      [&] { return (ended = child.wait(Duration(0)).has_value()) || checkpoints_in(storage) > enough; },
      std::chrono::seconds(120)));
  if (!ended) ended = child.wait(Duration(random.below(20'000))).has_value();
  if (ended) return false;
  (void)child.signal(SIGTERM);  // forwarded to every rank; pauses training at the next batch
  if (random.below(2) == 0) (void)child.signal_group(SIGKILL);
  (void)child.wait(std::chrono::seconds(60));
  return true;
}

TEST_CASE("training on one, two and four processes gives the same bits") {
  std::string digests[3];
  for (int i = 0; i < 3; ++i) {
    const auto storage = TemporaryDirectory::create().value();
    digests[i] = digest_at_end(storage.path(), 1 << i);
  }
  CHECK(digests[0] == digests[1]);
  CHECK(digests[0] == digests[2]);
}

TEST_CASE("processes added before an epoch draw the numbers of the first one in hooks") {
  const auto whole = TemporaryDirectory::create().value(), grown = TemporaryDirectory::create().value();
  constexpr int kEpoch = 12;
  REQUIRE(run_process(program(grown.path(), 1, "exact", kEpoch), {.timeout = std::chrono::seconds(120)})
              .value()
              .ok());
  CHECK(digest_at_end(grown.path(), 4) == digest_at_end(whole.path(), 1));
}

TEST_CASE("a process computes with one thread unless the number is chosen") {
  for (const std::string chosen : {"", "2"}) {
    const auto storage = TemporaryDirectory::create().value();
    ProcessOptions options = program(storage.path(), 1, "exact", 2);
    options.env = environment_with(
        {chosen.empty() ? "OMP_NUM_THREADS" : "OMP_NUM_THREADS=" + chosen, "DET_DEFAULT_THREADS"});
    const ProcessResult result = run_process(options, {.timeout = std::chrono::seconds(120)}).value();
    INFO(result.err);
    CHECK_THAT(result.out, Catch::Contains("threads " + (chosen.empty() ? "1" : chosen) + "\n"));
  }
}

TEST_CASE("two processes average gradients of a layer unfrozen in training, and validate the same model") {
  const auto storage = TemporaryDirectory::create().value();
  digest_at_end(storage.path(), 2, "fast");
}

TEST_CASE("processes whose batches reach different models end with an error that names the models") {
  const auto storage = TemporaryDirectory::create().value();
  const ProcessResult result =
      run_process(program(storage.path(), 2, "apart"), {.timeout = std::chrono::seconds(120)}).value();
  CHECK_FALSE(result.ok());
  CHECK_THAT(
      result.err,
      Catch::Contains("rank 0 reached model 0 (torch::nn::Conv2dImpl), model 1 (torch::nn::SequentialImpl), "
                      "and rank 1 reached model 2 (torch::nn::LinearImpl)"));
}

TEST_CASE("a trial killed and resized at random points ends in the same bits") {
  const char* is_long = std::getenv("DET_TEST_LONG");
  const int wanted = is_long != nullptr && std::string(is_long) == "1" ? 100 : 6;
  const auto whole = TemporaryDirectory::create().value();
  const std::string expected = digest_at_end(whole.path(), 1);
  Random random{Catch::rngSeed() + std::uint64_t{1}, 0};
  for (int kills = 0; kills < wanted;) {
    const auto storage = TemporaryDirectory::create().value();
    while (kills < wanted && kill_once(storage.path(), 1 << random.below(3), random)) ++kills;
    CHECK(digest_at_end(storage.path(), 1 << random.below(3)) == expected);
  }
}

}  // namespace
}  // namespace det
