// The Core API in one process: reports, validation, checkpoints and trial info.
#include "det/core.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "common/base/files.h"
#include "common/base/json.h"
#include "harness/src/base/storage_full.h"
#include "harness/src/checkpoint/checkpoint_dir.h"
#include "harness/src/client/trial_info.h"
#include "harness/src/core_api/core_state.h"
#include "small_disk.h"

namespace det {
namespace {

/// Records the reports.
struct Recorder final : Client {
  void report_metrics(const std::string& group, std::int64_t step, const Json& metrics) override {
    said.push_back(group + " " + std::to_string(step) + " " + dump_json(metrics));
  }
  void report_progress(double progress, std::int64_t step) override {
    said.push_back("progress " + std::to_string(progress) + " " + std::to_string(step));
  }
  void report_checkpoint(const CheckpointRecord& record) override { checkpoints.push_back(record); }
  void report_invalid_hp() override { said.push_back("invalid hp"); }
  bool should_preempt() const override { return preempt; }
  void acknowledge_preemption() override { said.push_back("acknowledged"); }
  bool flush(std::chrono::seconds) override { return true; }
  std::vector<std::string> said;
  std::vector<CheckpointRecord> checkpoints;
  bool preempt = false;
};

struct Core {
  Core() : storage(TemporaryDirectory::create().value()), context(make()) {}
  CoreContext make() {
    auto state = std::make_unique<CoreState>();
    auto recorder = std::make_unique<Recorder>();
    client = recorder.get();
    state->client = std::move(recorder);
    state->distributed = std::make_shared<DistributedContext>();
    state->info.checkpoint_storage = storage.path();
    return CoreContext(std::move(state));
  }
  TemporaryDirectory storage;
  Recorder* client = nullptr;
  CoreContext context;
};

void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

using Catch::Matchers::Message;
#define REFUSES(call, part) CHECK_THROWS_WITH(call, Catch::Contains(part))

// The earlier names in det::core remain for one release.
static_assert(std::is_same_v<core::Context, CoreContext> && std::is_same_v<core::Options, CoreOptions>);

TEST_CASE("a disk that is full is told apart from other failures of an upload") {
  const auto files = TemporaryDirectory::create().value();
  put(files.path() + "/weights", std::string(1 << 20, 'x'));
  Core core;
  const testing::SmallDisk disk(core.storage.path());
  if (!disk.mounted()) {
    WARN("no file system can be mounted here");
    return;
  }
  auto& checkpoint = core.context.checkpoint();
  CHECK_THROWS_AS(checkpoint.upload(files.path(), {{"steps_completed", 1}}), StorageFull);
  CHECK(std::filesystem::is_empty(core.storage.path()));
}

TEST_CASE("metrics are reported unchanged, including NaN and infinities") {
  Core core;
  auto& train = core.context.train();
  train.report_training_metrics(1, {{"loss", 0.25}, {"norm", std::numeric_limits<double>::infinity()}});
  train.report_validation_metrics(1, {{"loss", std::nan("")}});
  train.report_metrics("my group", 0, {{"a", nullptr}});
  train.report_progress(0.5);
  train.report_progress(1, 7);
  train.report_early_exit(ExitedReason::kInvalidHP);
  CHECK(core.client->said == std::vector<std::string>{R"(training 1 {"loss":0.25,"norm":"Infinity"})",
                                                      R"(validation 1 {"loss":"NaN"})",
                                                      R"(my group 0 {"a":null})", "progress 0.500000 1",
                                                      "progress 1.000000 7", "invalid hp"});
}

TEST_CASE("invalid reports are refused at the call, and nothing is sent") {
  Core core;
  auto& train = core.context.train();
  REFUSES(train.report_metrics("a.b", 1, {{"x", 1}}), "without \".\"");
  REFUSES(train.report_metrics("", 1, {{"x", 1}}), "1 to 128 characters");
  REFUSES(train.report_metrics(std::string(129, 'g'), 1, {{"x", 1}}), "1 to 128 characters");
  REFUSES(train.report_metrics("gpu", 1, {{"x", 1}}), "is the system profiler's");
  REFUSES(train.report_training_metrics(-1, {{"x", 1}}), "must not be negative");
  REFUSES(train.report_training_metrics(1, Json::array({1})), "expected an object");
  REFUSES(train.report_training_metrics(1, {{"", 1}}), "1 to 256 characters");
  REFUSES(train.report_training_metrics(1, {{"größe", 1}}), "printable ASCII");
  REFUSES(train.report_validation_metrics(1, {{"loss", nullptr}}), "\"loss\" is null");
  REFUSES(train.report_training_metrics(1, {{"text", std::string(2 << 20, 'x')}}),
          "training metrics at step 1");
  Json many = Json::object();
  for (int i = 0; i < 1001; ++i) many["m" + std::to_string(i)] = i;
  REFUSES(train.report_training_metrics(1, many), "more than 1000");
  REFUSES(train.report_progress(1.5), "within 0 and 1");
  REFUSES(train.report_progress(std::nan("")), "within 0 and 1");
  CHECK(core.client->said.empty());
}

TEST_CASE("a group and step is reported once, and an identical repeat is ignored") {
  Core core;
  auto& train = core.context.train();
  train.report_training_metrics(1, {{"loss", 1}});
  train.report_training_metrics(1, {{"loss", 1}});
  REFUSES(train.report_training_metrics(1, {{"accuracy", 1}}), "in one call");
  train.report_validation_metrics(1, {{"loss", 2}});
  train.report_training_metrics(2, {{"loss", 1}});
  CHECK(core.client->said.size() == 3);
}

TEST_CASE("preemption is acknowledged once, automatically or explicitly") {
  Core core;
  auto& preempt = core.context.preempt();
  CHECK_FALSE(preempt.should_preempt());
  CHECK_THROWS_AS(preempt.acknowledge_preemption_signal(), std::logic_error);
  core.client->preempt = true;
  SECTION("automatically") {
    CHECK(preempt.should_preempt());
    CHECK(preempt.should_preempt());
    CHECK(core.client->said == std::vector<std::string>{"acknowledged"});
  }
  SECTION("explicitly") {
    CHECK(preempt.should_preempt(/*auto_ack=*/false));
    CHECK(core.client->said.empty());
    preempt.acknowledge_preemption_signal();
    preempt.acknowledge_preemption_signal();
    CHECK(core.client->said == std::vector<std::string>{"acknowledged"});
  }
}

TEST_CASE("files written in store_path become a reported checkpoint with its metadata") {
  Core core;
  auto& checkpoint = core.context.checkpoint();
  const Json metadata{{"steps_completed", 12}, {"epoch", 3}};
  const auto stored = checkpoint.store_path(metadata, [](const std::string& directory) {
    std::filesystem::create_directories(directory + "/deep/er");
    put(directory + "/deep/er/weights", "12345");
    put(directory + "/metadata.json", "ours is written instead");
    put(directory + "/manifest.json", "and so is this");
  });
  CHECK(stored.path == core.storage.path() + "/" + stored.uuid);
  CHECK(verify_checkpoint(stored.path));
  CHECK(checkpoint.get_metadata(stored.uuid) == metadata);
  REQUIRE(core.client->checkpoints.size() == 1);
  const CheckpointRecord& record = core.client->checkpoints[0];
  CHECK(record.uuid == stored.uuid);
  CHECK(record.steps_completed == 12);
  CHECK(record.resources.at("deep/er/weights") == 5);
  CHECK(record.resources.size() == 3);
  CHECK(record.metadata == metadata);

  std::string text;
  checkpoint.restore_path(stored.uuid, [&](const std::string& directory) {
    text = read_file(directory + "/deep/er/weights").value();
  });
  CHECK(text == "12345");
  checkpoint.download(stored.uuid, core.storage.path() + "/elsewhere/copy");
  CHECK(verify_checkpoint(core.storage.path() + "/elsewhere/copy"));

  // A downloaded checkpoint can be uploaded as a new one.
  const std::string again =
      checkpoint.upload(core.storage.path() + "/elsewhere/copy", {{"steps_completed", 13}}, true);
  CHECK(checkpoint.get_metadata(again)["steps_completed"] == 13);
  CHECK(verify_checkpoint(core.storage.path() + "/" + again));
  CHECK(core.client->checkpoints.size() == 2);
}

TEST_CASE("an incomplete checkpoint is not stored") {
  Core core;
  auto& checkpoint = core.context.checkpoint();
  const auto fails = [](const std::string& directory) {
    put(directory + "/half", "");
    throw std::runtime_error("no more");
  };
  CHECK_THROWS_WITH(checkpoint.store_path({{"steps_completed", 1}}, fails), "no more");
  CHECK_THROWS_AS(checkpoint.upload("/nowhere/at/all", {{"steps_completed", 1}}), std::exception);
  const Json negative{{"steps_completed", -1}}, text{{"steps_completed", "1"}};
  for (const Json& metadata : {Json::object(), negative, text, Json(5)}) {
    CHECK_THROWS_AS(checkpoint.store_path(metadata, [](const std::string&) {}), std::invalid_argument);
  }
  CHECK(core.client->checkpoints.empty());
  CHECK(std::filesystem::is_empty(core.storage.path()));
}

TEST_CASE("a damaged checkpoint is not restored, and a path is not accepted as a uuid") {
  Core core;
  auto& checkpoint = core.context.checkpoint();
  const auto stored = checkpoint.store_path(
      {{"steps_completed", 1}}, [](const std::string& directory) { put(directory + "/weights", "abc"); });
  put(stored.path + "/weights", "abd");
  bool read = false;
  const auto touch = [&](const std::string&) { read = true; };
  CHECK_THROWS_WITH(checkpoint.restore_path(stored.uuid, touch), Catch::Contains("weights is damaged"));
  CHECK_THROWS_AS(checkpoint.download(stored.uuid, core.storage.path() + "/x"), std::runtime_error);
  CHECK_THROWS_AS(checkpoint.restore_path("0123", touch), std::runtime_error);
  CHECK_THROWS_AS(checkpoint.restore_path("../" + stored.uuid, touch), std::invalid_argument);
  CHECK_THROWS_AS(checkpoint.get_metadata("0123"), std::runtime_error);
  CHECK_FALSE(read);
}

TEST_CASE("a checkpoint can be deleted without a cluster") {
  Core core;
  auto& checkpoint = core.context.checkpoint();
  const auto stored = checkpoint.store_path({{"steps_completed", 1}}, [](const std::string&) {});
  checkpoint.delete_(stored.uuid);
  CHECK(std::filesystem::is_empty(core.storage.path()));
  CHECK_THROWS_AS(checkpoint.delete_(stored.uuid), std::runtime_error);
}

TEST_CASE("the profiler can be switched and refuses invalid intervals") {
  Core core;
  auto& profiler = core.context.profiler();
  CHECK_THROWS_AS(profiler.on(0), std::invalid_argument);
  CHECK_THROWS_AS(profiler.on(1, 0), std::invalid_argument);
  profiler.on(3600);
  profiler.on(3600);
  profiler.off();
  profiler.off();
  profiler.on(3600);
}

TEST_CASE("without a cluster the trial info comes from the configuration file") {
  const auto directory = TemporaryDirectory::create().value();
  put(directory.path() + "/const.yaml",
      "hyperparameters:\n  lr: 0.5\n  depth: {type: const, val: 3}\nreproducibility:\n  experiment_seed: "
      "77\n");
  const CoreContext context = init_core(
      {.config_file = directory.path() + "/const.yaml", .checkpoint_dir = directory.path() + "/storage"});
  const CoreInfo& info = context.info();
  CHECK_FALSE(info.on_cluster);
  CHECK(info.hparams == Json{{"lr", 0.5}, {"depth", 3}});
  CHECK(info.trial_seed == 77);
  CHECK(info.trial_id == 0);
  CHECK(info.checkpoint_storage == directory.path() + "/storage");
  CHECK_THROWS_WITH(init_core({.config_file = "/nowhere.yaml"}), Catch::Contains("/nowhere.yaml"));
}

TEST_CASE("on a cluster the trial info comes from the agent's variables") {
  const std::pair<const char*, const char*> variables[] = {
      {"DET_MASTER", "127.0.0.1:1"},
      {"DET_ALLOCATION_ID", "3.x.2"},
      {"DET_TASK_ID", "3.x"},
      {"DET_AGENT_ID", "blue"},
      {"DET_CLUSTER_ID", "c"},
      {"DET_EXPERIMENT_ID", "3"},
      {"DET_TRIAL_ID", "4"},
      {"DET_TRIAL_RUN_ID", "2"},
      {"DET_TRIAL_SEED", "5"},
      {"DET_HPARAMS", "{\"lr\": 1}"},
      {"DET_SLOT_IDS", "[1, 2]"},
      {"DET_EXPERIMENT_CONFIG",
       "{\"checkpoint_storage\": {\"type\": \"directory\", \"container_path\": \"/c\"}}"}};
  for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  const auto info = cluster_trial_info();
  ::setenv("DET_SLOT_IDS", "[1, \"x\"]", 1);
  const auto wrong = cluster_trial_info();
  for (const auto& [name, value] : variables) ::unsetenv(name);
  REQUIRE(info);
  CHECK(info->on_cluster);
  CHECK(info->slot_ids == std::vector<int>{1, 2});
  CHECK(info->agent_id == "blue");
  CHECK(info->task_id == "3.x");
  CHECK(info->allocation_id == "3.x.2");
  CHECK(info->master == "127.0.0.1:1");
  REQUIRE_FALSE(wrong);
  CHECK_THAT(wrong.error().message, Catch::Contains("DET_SLOT_IDS"));
}

}  // namespace
}  // namespace det
