// Runs `det preview-search` and `det experiment simulate|extend|retry`.
#include <catch2/catch.hpp>

#include "fake_master.h"

namespace det::cli::test {
namespace {

constexpr const char* kAdaptive =
    "name: x\n"
    "entrypoint: run\n"
    "searcher: {name: adaptive_asha, metric: loss, max_time: 64, time_metric: batches, max_trials: 16, "
    "divisor: 4,\n"
    "           mode: aggressive, max_concurrent_trials: 4}\n"
    "hyperparameters: {rate: {type: log, base: 10, minval: -4, maxval: 0}}\n"
    "reproducibility: {experiment_seed: 7}\n";

struct Folder {
  Folder() {
    write("adaptive.yaml", kAdaptive);
    write("wrong.yaml",
          "name: x\nentrypoint: run\nsearcher: {name: adaptive_asha, metric: loss, max_trials: -1}\n");
    write("curves.csv", "0.5,0.4,0.3\n0.9,0.8,0.7\n");
  }
  void write(const std::string& name, const std::string& text) const {
    REQUIRE(write_file_atomic(home.path() + "/" + name, text));
  }
  ProcessResult det(std::vector<std::string> arguments) const {
    return master.det(std::move(arguments), home.path(), "");
  }
  TemporaryDirectory home = TemporaryDirectory::create().value();
  FakeMaster master;
};

}  // namespace

TEST_CASE("a search is previewed without a master, with the trials that each rung keeps") {
  const Folder folder;
  const auto shown = folder.det({"preview-search", "adaptive.yaml"});
  INFO(shown.err);
  REQUIRE(shown.status.code == 0);
  CHECK(has(shown.out, "Using search configuration:\nname: adaptive_asha\n"));
  CHECK(has(shown.out, " Trials | Training Time\n"));
  CHECK(has(shown.out, "     12 | 4 batches\n"));
  CHECK(has(shown.out, "      3 | 16 batches\n"));
  CHECK(has(shown.out, "      1 | 64 batches\n"));
}

TEST_CASE("an invalid search is neither previewed nor simulated, and each problem has its place") {
  const Folder folder;
  for (const char* verb : {"preview-search", "simulate"}) {
    std::vector<std::string> arguments{verb, "wrong.yaml"};
    if (std::string(verb) == "simulate") arguments.insert(arguments.begin(), "experiment");
    const auto refused = folder.det(arguments);
    CHECK(refused.status.code == 2);
    CHECK(has(refused.err, "wrong.yaml:3:"));
    CHECK(has(refused.err, "searcher.max_trials"));
    CHECK(refused.out.empty());
  }
  const auto missing = folder.det({"preview-search", "nowhere.yaml"});
  CHECK(missing.status.code == 2);
  CHECK(has(missing.err, "nowhere.yaml"));
}

TEST_CASE("a simulated search is deterministic per seed and shorter than training all trials") {
  const Folder folder;
  const auto simulate = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"experiment", "simulate", "adaptive.yaml", "--workers", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto done = folder.det(arguments);
    INFO(done.err);
    CHECK(done.status.code == 0);
    return done.out;
  };
  const std::string first = simulate({});
  CHECK(has(first, "16 trials, "));
  CHECK(has(first, " on 4 workers in "));
  CHECK(has(first, "best loss "));
  CHECK(simulate({}) == first);
  CHECK(simulate({"--seed", "8"}) != first);
  CHECK_FALSE(has(first, "1024 units of training"));  // 16 trials of 64 units
  CHECK(has(simulate({"--config", "searcher.max_trials=3"}), "3 trials, "));
  CHECK_FALSE(has(simulate({"--trials-shown", "0"}), "run times"));
}

TEST_CASE("an unknown surface and a malformed recorded surface are refused by name") {
  const Folder folder;
  const auto unknown = folder.det({"experiment", "simulate", "adaptive.yaml", "--surface", "mountain"});
  CHECK(unknown.status.code == 2);
  CHECK(has(unknown.err, "mountain"));
  folder.write("broken.csv", "0.5,zero\n");
  const auto broken = folder.det({"experiment", "simulate", "adaptive.yaml", "--surface", "broken.csv"});
  CHECK(broken.status.code == 2);
  CHECK(has(broken.err, "broken.csv"));
}

TEST_CASE("extend requires a target before it contacts the master") {
  const Folder folder;
  const auto refused = folder.det({"experiment", "extend", "3"});
  CHECK(refused.status.code == 2);
  CHECK(has(refused.err, "--max-trials N"));
}

}  // namespace det::cli::test
