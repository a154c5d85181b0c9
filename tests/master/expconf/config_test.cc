// The parsed struct of valid configurations.
#include <catch2/catch.hpp>

#include "case_file.h"
#include "common/expconf/parse.h"
#include "test_paths.h"

namespace det::expconf::test {
namespace {

ExperimentConfig config_of(const std::string& text) {
  auto parsed = parse(text + "\nsearcher: {name: single, metric: loss}\n", "t.yaml", {});
  INFO((parsed ? "" : parsed.error().message));
  REQUIRE(parsed);
  return std::move(parsed->config);
}

ExperimentConfig from_file(const std::string& name) {
  auto parsed = parse(read_all(source_path("/tests/master/expconf/seeds/") + name), name, {});
  INFO((parsed ? "" : parsed.error().message));
  REQUIRE(parsed);
  return std::move(parsed->config);
}

}  // namespace

TEST_CASE("unset fields have the defaults of the struct") {
  const ExperimentConfig config = config_of("entrypoint: run");
  const ExperimentConfig plain;
  CHECK(config.max_restarts == plain.max_restarts);
  CHECK(config.checkpoint_policy == plain.checkpoint_policy);
  CHECK(config.min_checkpoint_period == plain.min_checkpoint_period);
  CHECK(config.min_validation_period == plain.min_validation_period);
  CHECK(config.scheduling_unit == plain.scheduling_unit);
  CHECK(config.records_per_epoch == plain.records_per_epoch);
  CHECK(config.preemption_timeout == plain.preemption_timeout);
  CHECK(config.resources.slots_per_trial == plain.resources.slots_per_trial);
  CHECK(config.resources.priority == plain.resources.priority);
  CHECK(config.resources.weight == plain.resources.weight);
  CHECK(config.searcher.smaller_is_better == plain.searcher.smaller_is_better);
  CHECK(config.checkpoint_storage.save_trial_best == plain.checkpoint_storage.save_trial_best);
  CHECK(!config.searcher.max_length);
  CHECK(!config.resources.max_slots);
}

TEST_CASE("every field is stored in the struct") {
  const ExperimentConfig config = from_file("everything.yaml");
  CHECK(config.name == "everything");
  CHECK(config.labels == std::vector<std::string>{"one", "two"});
  CHECK(config.data.at("nested").at("deep").size() == 2);
  CHECK(config.workspace == "Research");
  CHECK(config.project == "Vision");
  CHECK(config.entrypoint == std::vector<std::string>{"python3", "train.py"});
  CHECK(config.entrypoint_is_list);
  CHECK(config.max_restarts == 2);
  CHECK(config.searcher.metric == "accuracy");
  CHECK_FALSE(config.searcher.smaller_is_better);
  CHECK(config.searcher.name == "adaptive_asha");
  CHECK(config.searcher.max_trials == 12);
  CHECK(config.searcher.max_concurrent_trials == 6);
  CHECK(config.searcher.divisor == 3);
  CHECK(config.searcher.mode == "aggressive");
  CHECK(config.searcher.max_rungs == 3);
  CHECK(config.searcher.bracket_rungs == std::vector<std::int64_t>{3, 2});
  CHECK(config.searcher.rung_policy == "promote");
  CHECK(config.searcher.sampler == "tpe");
  CHECK(config.searcher.max_length == Length{Length::Unit::kRecords, 1000});
  CHECK(config.searcher.max_time == 100);
  CHECK(config.searcher.time_metric == "batches");
  CHECK(config.searcher.source_trial_id == 4);
  CHECK(config.resources.slots_per_trial == 2);
  CHECK(config.resources.resource_pool == "big");
  CHECK(config.resources.priority == 10);
  CHECK(config.resources.max_slots == 4);
  CHECK(config.resources.weight == 1.5);
  CHECK(config.resources.is_single_node);
  CHECK(config.environment_variables == std::map<std::string, std::string>{{"A", "1"}, {"B", "two=2"}});
  CHECK(config.checkpoint_storage.root() == "/shared/mine");
  CHECK(config.checkpoint_storage.save_trial_latest == 3);
  CHECK(config.checkpoint_policy == "all");
  CHECK(config.min_checkpoint_period == Length{Length::Unit::kBatches, 100});
  CHECK(config.min_validation_period == Length{Length::Unit::kEpochs, 1});
  CHECK(config.perform_initial_validation);
  CHECK(config.records_per_epoch == 1000);
  CHECK(config.scheduling_unit == 50);
  CHECK(config.experiment_seed == 7);
  CHECK(config.preemption_timeout == 60);
  CHECK(config.debug);
}

TEST_CASE("hyperparameters of every type are parsed with their ranges") {
  const HyperparameterMap map = from_file("everything.yaml").hyperparameters;
  using Type = Hyperparameter::Type;
  CHECK(map.at("constant").value == 3);
  CHECK(map.at("typed").value == "text");
  const Hyperparameter& whole = map.at("whole");
  CHECK((whole.type == Type::kInt && whole.int_min == 1 && whole.int_max == 9 && whole.count == 3));
  const Hyperparameter& real = map.at("real");
  CHECK((real.type == Type::kDouble && real.min == 0.5 && real.max == 2 && !real.count));
  const Hyperparameter& power = map.at("power");
  CHECK((power.type == Type::kLog && power.base == 10 && power.min == -4 && power.max == -1));
  CHECK(map.at("choice").values.size() == 2);
  const Hyperparameter& nested = map.at("nested");
  CHECK(nested.type == Type::kNested);
  CHECK(nested.children.at("inner").type == Type::kInt);
  CHECK(nested.children.at("empty").type == Type::kNested);
}

TEST_CASE("module:Class names a trial class, everything else is a command") {
  using Name = std::pair<std::string, std::string>;
  CHECK(config_of("entrypoint: model_def:MNistTrial").trial_class() == Name{"model_def", "MNistTrial"});
  CHECK(config_of("entrypoint: pkg.mod:Outer.Nested").trial_class() == Name{"pkg.mod", "Outer.Nested"});
  for (const char* command : {"python3 train.py", "train.sh", "./a:b", "a:b c", "'a:'", "':b'", "a:1b",
                              "a..b:C", "a:b:c", "\"echo model_def:X\""}) {
    INFO(command);
    CHECK_FALSE(config_of(std::string("entrypoint: ") + command).trial_class());
  }
  CHECK_FALSE(config_of("entrypoint: [\"model_def:MNistTrial\"]").trial_class());
}

TEST_CASE("a relative path that ends in .pt2 is a compiled step, everything else is a command") {
  CHECK(config_of("entrypoint: step.pt2").compiled_step() == "step.pt2");
  CHECK(config_of("entrypoint: ./exported/mnist-2.pt2").compiled_step() == "./exported/mnist-2.pt2");
  for (const char* command : {"/steps/step.pt2", "../step.pt2", "python3 train.py step.pt2",
                              "step.pt2 --fast", "step.pt", "'[\"step.pt2\"]'", "-step.pt2", "$STEP.pt2"}) {
    INFO(command);
    CHECK(config_of(std::string("entrypoint: ") + command).compiled_step().empty());
  }
  CHECK(config_of("entrypoint: [step.pt2]").compiled_step().empty());
}

TEST_CASE("checkpoint paths are under the storage's root") {
  CheckpointStorage storage;
  storage.host_path = "/shared";
  CHECK(storage.root() == "/shared");
  storage.storage_path = "a/b";
  CHECK(storage.root() == "/shared/a/b");
  storage.storage_path = "/shared/c";
  CHECK(storage.root() == "/shared/c");
  storage.type = "directory";
  storage.container_path = "/checkpoints";
  CHECK(storage.root() == "/checkpoints");
}

TEST_CASE("command-line assignments are merged into the submitted text") {
  const auto same = apply_overrides("name: a # kept\n", "t.yaml", {});
  REQUIRE(same);
  CHECK(*same == "name: a # kept\n");
  const auto merged = apply_overrides("name: a\nsearcher:\n  name: single\n", "t.yaml",
                                      {{"searcher.max_length.epochs=3"}, {"name=b: c"}, {"labels=[x]"}});
  // A map value becomes a map, as in the file.
  REQUIRE(merged);
  CHECK(*merged ==
        "name:\n  b: c\nsearcher:\n  name: single\n  max_length:\n    epochs: 3\nlabels:\n  - x\n");
}

}  // namespace det::expconf::test
