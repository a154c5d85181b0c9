// Continued searches: more trials, more time, and retries of failed trials.
#include <catch2/catch.hpp>

#include "bench.h"

namespace det::core {
namespace {

std::shared_ptr<const Recovered> rows_of(const Bench& bench, ExperimentId id) {
  return std::make_shared<const Recovered>(bench.disk().recover(id));
}

std::shared_ptr<expconf::ExperimentConfig> random_search(const Bench& bench, std::int64_t trials) {
  auto config = bench.config(1, 0);
  config->searcher.name = "random";
  config->searcher.max_trials = trials;
  config->searcher.max_length = expconf::Length{expconf::Length::Unit::kBatches, 100};
  config->resolved["searcher"] = {{"max_trials", trials}, {"max_length", {{"batches", 100}}}};
  return config;
}

void run_to_end(Bench& bench, std::int64_t first, std::int64_t last, ExitKind kind = ExitKind::kSucceeded) {
  for (std::int64_t id = first; id <= last; ++id) bench.exit(TrialId{id}, kind);
}

/// Returns std::nullopt on success.
std::optional<Code> code_of(Bench& bench, ContinueSearch input) {
  const auto answer = bench.step(input);
  if (!answer) return Code::kUnknown;
  return *answer ? std::nullopt : std::optional(answer->error().code);
}

TEST_CASE("extending a finished search creates more trials") {
  Bench bench;
  bench.connect("a1", 8);
  const ExperimentId id = bench.submit(random_search(bench, 2));
  run_to_end(bench, 1, 2);
  REQUIRE(bench.experiment(id).state == State::kCompleted);
  const searcher::Extended more{.max_trials = 5, .max_time = std::nullopt};
  CHECK(code_of(bench, {.experiment = id, .extend = more}) == Code::kNotFound);
  CHECK(code_of(bench, {.experiment = id, .extend = more, .ended = rows_of(bench, id)}) == std::nullopt);
  CHECK(bench.experiment(id).state == State::kActive);
  CHECK_FALSE(bench.experiment(id).ended);
  run_to_end(bench, 3, 5);
  CHECK(bench.experiment(id).state == State::kCompleted);
  CHECK(bench.disk().trials.size() == 5);
}

TEST_CASE("a dry run of an extension returns the same result and changes nothing") {
  Bench bench;
  bench.connect("a1", 8);
  const ExperimentId id = bench.submit(random_search(bench, 2));
  const searcher::Extended more{.max_trials = 5, .max_time = std::nullopt};
  CHECK(code_of(bench, {.experiment = id, .extend = more, .ended = nullptr, .only_check = true}) ==
        std::nullopt);
  run_to_end(bench, 1, 2);
  REQUIRE(bench.experiment(id).state == State::kCompleted);
  CHECK(code_of(bench, {.experiment = id, .extend = more, .ended = rows_of(bench, id), .only_check = true}) ==
        std::nullopt);
  const searcher::Extended fewer{.max_trials = 1, .max_time = std::nullopt};
  CHECK(
      code_of(bench, {.experiment = id, .extend = fewer, .ended = rows_of(bench, id), .only_check = true}) ==
      code_of(bench, {.experiment = id, .extend = fewer, .ended = rows_of(bench, id)}));
  CHECK(bench.experiment(id).state == State::kCompleted);
  CHECK(bench.disk().trials.size() == 2);
  // The dry run dropped the experiment again: without its rows the core does not find it.
  CHECK(code_of(bench, {.experiment = id, .extend = more}) == Code::kNotFound);
}

TEST_CASE("a killed search continues without the trials that it never created") {
  Bench bench;
  bench.connect("a1", 8);
  auto config = random_search(bench, 4);
  config->searcher.max_concurrent_trials = 2;
  const ExperimentId id = bench.submit(config);
  REQUIRE(bench.step(ActOnExperiment{.experiment = id, .action = ExperimentAction::kKill}));
  run_to_end(bench, 1, 2, ExitKind::kStopped);
  REQUIRE(bench.experiment(id).state == State::kCanceled);
  REQUIRE(bench.disk().trials.size() == 2);
  const searcher::Extended more{.max_trials = 6, .max_time = std::nullopt};
  REQUIRE(code_of(bench, {.experiment = id, .extend = more, .ended = rows_of(bench, id)}) == std::nullopt);
  for (std::int64_t trial = 3; bench.experiment(id).state == State::kActive; ++trial) {
    REQUIRE(trial <= 6);
    run_to_end(bench, trial, trial);
  }
  CHECK(bench.experiment(id).state == State::kCompleted);
}

TEST_CASE("an extension survives a restart of the master, and its trials get the longer length") {
  Bench bench;
  bench.connect("a1", 8);
  const ExperimentId id = bench.submit(random_search(bench, 2));
  run_to_end(bench, 1, 1);
  REQUIRE(code_of(bench, {.experiment = id,
                          .extend = searcher::Extended{.max_trials = {}, .max_time = 300}}) == std::nullopt);
  const auto starts = bench.sends<StartAllocation>();
  REQUIRE(starts.size() == 1);
  CHECK(starts[0].trial.id == TrialId{1});
  CHECK(starts[0].config->searcher.max_length->count == 300);
  CHECK(starts[0].config->resolved["searcher"]["max_length"]["batches"] == 300);
  CHECK(bench.experiment(id).config->searcher.max_length->count == 100);
  bench.restart();
  bench.connect("a1", 8);
  for (const auto& start : bench.sends<StartAllocation>())
    CHECK(start.config->searcher.max_length->count == 300);
  CHECK_FALSE(bench.sends<StartAllocation>().empty());
}

TEST_CASE("an extension reaches the trials that run, once they have completed the old length") {
  Bench bench;
  bench.connect("a1", 8);
  const ExperimentId id = bench.submit(random_search(bench, 2));
  REQUIRE(code_of(bench, {.experiment = id,
                          .extend = searcher::Extended{.max_trials = {}, .max_time = 300}}) == std::nullopt);
  run_to_end(bench, 1, 1);
  bench.restart();
  bench.connect("a1", 8);
  run_to_end(bench, 2, 2);
  const auto starts = bench.sends<StartAllocation>();
  REQUIRE_FALSE(starts.empty());
  CHECK(starts.back().trial.id == TrialId{2});
  CHECK(starts.back().allocation.run == 2);
  CHECK(starts.back().config->searcher.max_length->count == 300);
  CHECK(bench.experiment(id).state == State::kActive);
  run_to_end(bench, 1, 2);
  CHECK(bench.experiment(id).state == State::kCompleted);
  CHECK(bench.trial(TrialId{1}).run == 2);
  CHECK(bench.trial(TrialId{2}).run == 2);
}

TEST_CASE("trials of an extended halving search get its rungs, also after a restart of the master") {
  Bench bench;
  bench.connect("a1", 8);
  auto config = random_search(bench, 2);
  config->searcher.name = "async_halving";
  config->searcher.num_rungs = 2;
  config->searcher.divisor = 4;
  const ExperimentId id = bench.submit(config);
  for (const auto& start : bench.sends<StartAllocation>())
    CHECK_FALSE(start.config->resolved["searcher"].contains("rungs"));
  REQUIRE(code_of(bench, {.experiment = id,
                          .extend = searcher::Extended{.max_trials = 3, .max_time = 300}}) == std::nullopt);
  const nlohmann::json rungs = {25, 100, 300};
  const auto starts = bench.sends<StartAllocation>();
  REQUIRE_FALSE(starts.empty());
  CHECK(starts.back().config->resolved["searcher"]["rungs"] == rungs);
  bench.restart();
  bench.connect("a1", 8);
  REQUIRE_FALSE(bench.sends<StartAllocation>().empty());
  CHECK(bench.sends<StartAllocation>().back().config->resolved["searcher"]["rungs"] == rungs);
}

TEST_CASE("failed trials run again from their checkpoints, and other trials are unchanged") {
  Bench bench;
  bench.connect("a1", 8);
  const ExperimentId id = bench.submit(random_search(bench, 3));
  REQUIRE(bench.attach(TrialId{2}, 1));
  REQUIRE(bench.checkpoint(TrialId{2}, 1, 40, "c40"));
  run_to_end(bench, 1, 1);
  run_to_end(bench, 2, 3, ExitKind::kFailed);
  REQUIRE(bench.experiment(id).state == State::kCompleted);
  REQUIRE(code_of(bench, {.experiment = id, .ended = rows_of(bench, id)}) == std::nullopt);
  const auto starts = bench.sends<StartAllocation>();
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].trial.id == TrialId{2});
  CHECK(starts[0].trial.latest_checkpoint == "c40");
  CHECK(starts[0].allocation.run == 2);
  CHECK(bench.trial(TrialId{1}).state == State::kCompleted);
  CHECK(bench.trial(TrialId{2}).restarts == 0);
  run_to_end(bench, 2, 3);
  CHECK(bench.experiment(id).state == State::kCompleted);
  CHECK(code_of(bench, {.experiment = id, .ended = rows_of(bench, id)}) == Code::kFailedPrecondition);
  CHECK(bench.core().experiments().empty());
}

TEST_CASE("killed trials run again only when they are asked for") {
  Bench bench;
  bench.connect("a1", 8);
  const ExperimentId id = bench.submit(random_search(bench, 2));
  REQUIRE(bench.step(KillTrial{.trial = TrialId{2}}));
  run_to_end(bench, 1, 1);
  run_to_end(bench, 2, 2, ExitKind::kStopped);
  REQUIRE(bench.trial(TrialId{2}).state == State::kCanceled);
  CHECK(code_of(bench, {.experiment = id, .ended = rows_of(bench, id)}) == Code::kFailedPrecondition);
  REQUIRE(code_of(bench, {.experiment = id, .ended = rows_of(bench, id), .canceled = true}) == std::nullopt);
  const auto starts = bench.sends<StartAllocation>();
  REQUIRE(starts.size() == 1);
  CHECK(starts[0].trial.id == TrialId{2});
  bench.restart();
  bench.connect("a1", 8);
  run_to_end(bench, 2, 2);
  CHECK(bench.trial(TrialId{2}).state == State::kCompleted);
  CHECK(bench.experiment(id).state == State::kCompleted);
}

TEST_CASE("a continuation with a longer length runs failed and killed trials again") {
  Bench bench;
  bench.connect("a1", 8);
  const ExperimentId id = bench.submit(random_search(bench, 3));
  REQUIRE(bench.step(KillTrial{.trial = TrialId{2}}));
  run_to_end(bench, 1, 1);
  run_to_end(bench, 2, 2, ExitKind::kStopped);
  run_to_end(bench, 3, 3, ExitKind::kFailed);
  REQUIRE(bench.experiment(id).state == State::kCompleted);
  const searcher::Extended longer{.max_trials = {}, .max_time = 300};
  REQUIRE(
      code_of(bench, {.experiment = id, .extend = longer, .ended = rows_of(bench, id), .canceled = true}) ==
      std::nullopt);
  const auto starts = bench.sends<StartAllocation>();
  CHECK(starts.size() == 3);
  for (const StartAllocation& start : starts) CHECK(start.config->searcher.max_length->count == 300);
  bench.restart();
  bench.connect("a1", 8);
  run_to_end(bench, 1, 3);
  CHECK(bench.experiment(id).state == State::kCompleted);
}

TEST_CASE("rows from before a continuation are refused") {
  Bench bench;
  bench.connect("a1", 8);
  const ExperimentId id = bench.submit(random_search(bench, 1));
  run_to_end(bench, 1, 1);
  const auto old = rows_of(bench, id);
  const searcher::Extended more{.max_trials = 2, .max_time = std::nullopt};
  REQUIRE(code_of(bench, {.experiment = id, .extend = more, .ended = old}) == std::nullopt);
  CHECK(code_of(bench, {.experiment = id, .extend = more, .ended = old}) == Code::kInvalidArgument);
  run_to_end(bench, 2, 2);
  REQUIRE(bench.experiment(id).state == State::kCompleted);
  CHECK(code_of(bench, {.experiment = id, .extend = more, .ended = old}) == Code::kAborted);
}

TEST_CASE("an experiment is not continued while it is deleted, and is again once every bar is lifted") {
  Bench bench;
  bench.connect("a1", 8);
  const ExperimentId id = bench.submit(random_search(bench, 1));
  run_to_end(bench, 1, 1);
  const ContinueSearch more{.experiment = id,
                            .extend = searcher::Extended{.max_trials = 2, .max_time = std::nullopt},
                            .ended = rows_of(bench, id)};
  BarExperiment bar{.experiment = id};
  REQUIRE(*bench.step(bar));
  REQUIRE(*bench.step(bar));
  const auto refused = bench.step(more);
  REQUIRE(det::core::code_of(refused) == Code::kFailedPrecondition);
  CHECK(refused->error().message == "experiment 1 is being deleted");
  bar.barred = false;
  REQUIRE(*bench.step(bar));
  CHECK(code_of(bench, more) == Code::kFailedPrecondition);
  REQUIRE(*bench.step(bar));
  CHECK(code_of(bench, more) == std::nullopt);
  // It is live now.
  bar.barred = true;
  CHECK(det::core::code_of(bench.step(bar)) == Code::kFailedPrecondition);
}

TEST_CASE("ending, unknown and fixed-size searches are not continued") {
  Bench bench;
  bench.connect("a1", 8);
  const searcher::Extended more{.max_trials = 9, .max_time = std::nullopt};
  CHECK(code_of(bench, {.experiment = ExperimentId{77}, .extend = more}) == Code::kNotFound);
  const ExperimentId single = bench.submit(bench.config(1, 0));
  CHECK(code_of(bench, {.experiment = single, .extend = more}) == Code::kFailedPrecondition);
  REQUIRE(bench.attach(TrialId{1}, 1));
  bench.act(single, ExperimentAction::kCancel);
  CHECK(code_of(bench, {.experiment = single}) == Code::kFailedPrecondition);
}

}  // namespace
}  // namespace det::core
