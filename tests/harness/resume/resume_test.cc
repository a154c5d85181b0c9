// Kills a trial at random moments, also during a checkpoint: the final state and the reports stay
// bit-identical.
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/process.h"
#include "common/base/random.h"
#include "common/base/text.h"
#include "common/base/wait.h"

namespace det {
namespace {

constexpr int kKills = 20;

ProcessOptions program(const std::string& directory) {
  return {.argv = {DET_RESUME_TRIAL, directory + "/checkpoints", directory + "/reports"},
          .env = environment_with({"OMP_NUM_THREADS=1"}),
          .cwd = "",
          .err = Stream::inherit()};
}

/// Runs to the end and returns the digest of the final state, the program's last line.
std::string run_to_end(const std::string& directory) {
  const ProcessResult result = run_process(program(directory)).value();
  INFO(result.err);
  REQUIRE(result.ok());
  return split(trim(result.out), '\n').back();
}

/// Key → values. A repeated report must equal the first. A line cut by the kill is skipped.
std::map<std::string, std::string> reports_of(const std::string& directory) {
  std::map<std::string, std::string> reports;
  std::ifstream in(directory + "/reports");
  for (std::string line; std::getline(in, line);) {
    const auto report = parse_json(line);
    if (!report) continue;
    const auto [entry, fresh] =
        reports.emplace((*report)["key"].get<std::string>(), (*report)["values"].dump());
    CHECK((fresh || entry->second == (*report)["values"].dump()));
  }
  return reports;
}

std::size_t size_of(const std::string& path) {
  std::ifstream in(path, std::ios::ate);
  return in ? static_cast<std::size_t>(in.tellg()) : 0;
}

/// Lets the program report a little more, then kills it in a random phase of a step or save. Returns false if
/// the program ended first.
bool kill_once(const std::string& directory, Random& random) {
  const std::string reports = directory + "/reports";
  const std::size_t enough = size_of(reports) + random.below(600);
  ProcessOptions options = program(directory);
  options.out = Stream::null();
  auto child = Child::spawn(options).value();
  bool ended = false;
  const bool seen =
      wait_until([&] { return (ended = child.wait(Duration(0)).has_value()) || size_of(reports) > enough; },
                 std::chrono::seconds(60));
  REQUIRE(seen);
  if (!ended) ended = child.wait(Duration(random.below(15'000))).has_value();
  if (ended) return false;
  REQUIRE(child.signal(SIGKILL).has_value());
  return child.wait(std::chrono::seconds(10)).value().signal == SIGKILL;
}

bool left_torn_checkpoint(const std::string& directory) {
  const auto found =
      run_process({.argv = {"find", directory + "/checkpoints", "-name", "*.partial"}}).value();
  return !found.out.empty();
}

TEST_CASE("a trial updates the heartbeat file") {
  const auto directory = TemporaryDirectory::create().value();
  ProcessOptions options = program(directory.path());
  options.env = environment_with({"OMP_NUM_THREADS=1", "DET_RUN_DIR=" + directory.path()});
  REQUIRE(run_process(options).value().ok());
  CHECK(path_exists(directory.path() + "/heartbeat"));
}

TEST_CASE("each batch of a full dataset updates the heartbeat file") {
  const auto directory = TemporaryDirectory::create().value();
  ProcessOptions options = program(directory.path());
  options.argv.push_back("full");
  options.env = environment_with({"OMP_NUM_THREADS=1", "DET_RUN_DIR=" + directory.path()});
  REQUIRE(run_process(options).value().ok());
  CHECK_THAT(reports_of(directory.path())["validation 1"], Catch::Contains("\"updated\":1.0"));
}

TEST_CASE("parameters, optimizer, generators and metrics are bit-identical after twenty random kills") {
  const auto whole = TemporaryDirectory::create().value();
  const std::string expected = run_to_end(whole.path());
  const auto expected_reports = reports_of(whole.path());
  CHECK(expected_reports.size() == 300 / 10 + 300 / 7 + 300 / 50 - 300 / 70);

  Random random{Catch::rngSeed() + std::uint64_t{1}, 0};
  for (int kills = 0, torn = 0; kills < kKills || torn == 0;) {
    const auto killed = TemporaryDirectory::create().value();
    while (kills < kKills && kill_once(killed.path(), random))
      ++kills, torn += left_torn_checkpoint(killed.path());
    CHECK(run_to_end(killed.path()) == expected);
    CHECK(reports_of(killed.path()) == expected_reports);
    // At least one of twenty kills must have hit a checkpoint being written.
    REQUIRE((kills < kKills || torn > 0));
  }
}

}  // namespace
}  // namespace det
