// Removal of checkpoints: real rows and directories, agents as local functions.
#include "master/gc/collector.h"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "common/base/event.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/storage/bucket_checkpoints.h"
#include "master/db/queries/cluster.h"
#include "master/db/queries/deletions.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"
#include "tests/storage/store.h"

namespace det::test {
namespace {

constexpr const char* kCluster = "this-cluster";

std::string name_of(int number) { return "00000000-0000-4000-8000-00000000000" + std::to_string(number); }

/// Experiment 1 with trial 1 (run 2) in a private storage. Trial and experiment have not ended.
struct World {
  Database database;
  RunningStore store{open_store(database)};
  db::Pool pool{database.connect()};
  TemporaryDirectory place = TemporaryDirectory::create("gc").value();
  std::string root = place.path() + "/storage";
  core::Experiment experiment = plain_experiment();
  core::Trial trial = plain_trial(1, 1, 2);
  std::vector<std::string> asked;
  std::shared_ptr<storage::Storages> storages = std::make_shared<storage::Storages>(
      storage::StoragePolicy{.own = {}, .data_dir = {}, .directories = {root}, .buckets = {}, .named = {}});

  explicit World(const std::string& type = "shared_fs") {
    auto config = std::make_shared<expconf::ExperimentConfig>(*experiment.config);
    const bool shared = type == "shared_fs";
    config->resolved["checkpoint_storage"] = {{"type", type},
                                              {shared ? "host_path" : "container_path", root},
                                              {"save_experiment_best", 0},
                                              {"save_trial_best", 1},
                                              {"save_trial_latest", 1}};
    config->searcher.smaller_is_better = true;
    experiment.config = config;
    REQUIRE(make_directories(root));
    core::Allocation allocation;
    allocation.id = AllocationId("task.2");
    allocation.task = trial.id;
    allocation.run = 2;
    allocation.parts.push_back({.agent = AgentId("a1")});
    store.write(
        {core::PutExperiment{experiment, true}, core::PutTrial{trial}, core::PutAllocation{allocation}});
  }
  gc::Collector collector(gc::StorageAgents agents = {}) {
    return {pool, {.cluster_id = kCluster, .storages = storages, .watch = false}, std::move(agents)};
  }
  void make_files(const std::string& name, const Json& owner = nullptr) {
    REQUIRE(make_directories(root + "/" + name + "/code"));
    REQUIRE(write_file_atomic(root + "/" + name + "/code/model.cpp", "int x;"));
    Json manifest{{"format", 2}, {"files", Json::object()}};
    if (!owner.is_null()) manifest["owner"] = owner;
    REQUIRE(write_file_atomic(root + "/" + name + "/manifest.json", dump_json(manifest)));
  }
  /// Saves a checkpoint, reports it, and makes it the trial's latest.
  void save(int number, std::optional<double> metric = std::nullopt) {
    const std::int64_t steps = number * 10;
    make_files(name_of(number));
    trial.latest_checkpoint = name_of(number);
    trial.latest_steps = steps;
    std::vector<core::Write> group{
        core::InsertCheckpoint{CheckpointId(name_of(number)), trial.id, 2, TaskId("task"),
                               AllocationId("task.2"), steps, R"({"a":10})", R"({"steps_completed":1})",
                               WallTime{steps}},
        core::PutTrial{trial}};
    if (metric) group.push_back(core::InsertValidation{trial.id, 2, steps, "{}", metric, WallTime{steps}});
    store.write(std::move(group));
  }
  void end() {
    trial.state = experiment.state = core::State::kCompleted;
    trial.ended = experiment.ended = WallTime{1};
    store.write({core::PutTrial{trial}, core::PutExperiment{experiment, false}});
  }
  bool there(int number) { return path_exists(root + "/" + name_of(number)); }
  std::string state(int number) {
    return database.value(
        ("SELECT state || CASE WHEN deleting THEN ' marked' ELSE '' END || ' ' || resources::text FROM"
         " checkpoints WHERE uuid = '" +
         name_of(number) + "'")
            .c_str());
  }
  /// Agents with these names, which work on local files.
  gc::StorageAgents agents(std::vector<std::string> names) {
    return {.ask = [this](const AgentId& agent, const storage::Work& work) -> Result<storage::Done> {
              asked.push_back(agent.value);
              storage::Work there = work;
              there.root = {place.path() + "/" + agent.value};
              return storage::perform(there);
            },
            .connected =
                [names] {
                  std::vector<AgentId> ids;
                  for (const std::string& name : names) ids.emplace_back(name);
                  return ids;
                }};
  }
};

}  // namespace

TEST_CASE("older checkpoints are removed while a trial trains, and the resume candidates stay") {
  World world;
  world.save(1, 0.5);
  world.save(2, 0.1);
  world.save(3, 0.3);
  world.save(4, 0.4);
  REQUIRE(world.collector().collect(ExperimentId(1)));
  CHECK_FALSE(world.there(1));
  CHECK(world.state(1) == "DELETED {}");
  CHECK(world.there(2));  // The best.
  CHECK(world.there(3));  // The fallback if the newest is damaged.
  CHECK(world.there(4));
  CHECK(world.state(4) == R"(COMPLETED {"a":10})");

  world.end();
  REQUIRE(world.collector().collect(ExperimentId(1)));
  CHECK(world.there(2));
  CHECK_FALSE(world.there(3));
  CHECK(world.there(4));
}

TEST_CASE("a changed policy applies to ended experiments") {
  World world;
  world.save(1, 0.5);
  world.save(2, 0.1);
  world.end();
  REQUIRE(world.collector().collect(ExperimentId(1)));
  CHECK((world.there(1) == false && world.there(2)));
  REQUIRE(world.pool.query(
      "UPDATE experiments SET config = replace(replace(config::text, '\"save_trial_best\":1',"
      " '\"save_trial_best\":0'), '\"save_trial_latest\":1', '\"save_trial_latest\":0')::json"));
  REQUIRE(world.collector().collect(ExperimentId(1)));
  CHECK_FALSE(world.there(2));
  CHECK(world.state(2) == "DELETED {}");
}

TEST_CASE("an interrupted removal resumes from any point") {
  World world;
  world.save(1);
  world.end();
  const CheckpointId uuid(name_of(1));
  REQUIRE(db::mark_for_removal(world.pool, {uuid})->size() == 1);
  CHECK(world.state(1) == R"(PARTIALLY_DELETED marked {"a":10})");
  SECTION("after marking") {}
  SECTION("after renaming the files") {
    REQUIRE(::rename((world.root + "/" + uuid.value).c_str(),
                     (world.root + "/" + uuid.value + ".partial").c_str()) == 0);
  }
  SECTION("after renaming, with files at both names") { world.make_files(uuid.value + ".partial"); }
  SECTION("after removing the files") { REQUIRE(remove_tree(world.root + "/" + uuid.value)); }
  REQUIRE(world.collector().remove({uuid}));
  CHECK(world.state(1) == "DELETED {}");
  CHECK_FALSE(world.there(1));
  CHECK_FALSE(path_exists(world.root + "/" + uuid.value + ".partial"));
  REQUIRE(world.collector().remove({uuid}));
}

TEST_CASE("the latest checkpoint of a running trial is never marked") {
  World world;
  world.save(1);
  world.save(2);
  CHECK(db::mark_for_removal(world.pool, {CheckpointId(name_of(1)), CheckpointId(name_of(2))}).value() ==
        std::vector{CheckpointId(name_of(1))});
}

TEST_CASE("the source checkpoint of an active experiment is kept") {
  World world;
  world.save(1, 0.5);
  world.save(2, 0.1);
  world.end();
  core::Experiment fork = plain_experiment(2);
  auto config = std::make_shared<expconf::ExperimentConfig>(*fork.config);
  config->resolved["searcher"]["source_checkpoint_uuid"] = name_of(1);
  fork.config = config;
  world.store.write({core::PutExperiment{fork, true}});
  // The experiment may start after the collector has looked for such ones.
  for (const bool whole : {true, false})
    CHECK(db::mark_for_removal(world.pool, {CheckpointId(name_of(1))}, whole)->empty());
  REQUIRE(world.collector().collect(ExperimentId(1)));
  CHECK(world.there(1));
  CHECK(db::started_from(world.pool, ExperimentId(1)).value() == ExperimentId(2));
  for (const auto kind : {db::Container::Kind::kProject, db::Container::Kind::kWorkspace}) {
    CHECK(db::started_from(world.pool, ExperimentId(1), db::Container{kind, 1}).value() == std::nullopt);
    CHECK(db::started_from(world.pool, ExperimentId(1), db::Container{kind, 9}).value() == ExperimentId(2));
  }
  fork.state = core::State::kCanceled;
  world.store.write({core::PutExperiment{fork, false}});
  CHECK(db::started_from(world.pool, ExperimentId(1)).value() == std::nullopt);
  REQUIRE(world.collector().collect(ExperimentId(1)));
  CHECK_FALSE(world.there(1));
}

TEST_CASE("files that the master cannot reach are removed by the agent that wrote them") {
  World world("directory");
  world.save(1);
  world.end();
  const std::string far = world.place.path() + "/a1";
  REQUIRE(::rename(world.root.c_str(), far.c_str()) == 0);
  const CheckpointId uuid(name_of(1));
  REQUIRE(db::mark_for_removal(world.pool, {uuid}));

  // The master has another directory of the same name, and so does an agent that never ran this trial.
  REQUIRE(make_directories(world.root));
  REQUIRE(make_directories(world.place.path() + "/a2"));
  const Status without = world.collector(world.agents({"a2"})).remove({uuid});
  REQUIRE_FALSE(without);
  CHECK_THAT(without.error().message, Catch::Contains("no agent is connected"));
  CHECK(world.asked.empty());
  CHECK(world.state(1) == R"(PARTIALLY_DELETED marked {"a":10})");

  REQUIRE(world.collector(world.agents({"a2", "a1"})).remove({uuid}));
  CHECK(world.asked == std::vector<std::string>{"a1"});
  CHECK_FALSE(path_exists(far + "/" + uuid.value));
  CHECK(world.state(1) == "DELETED {}");
}

TEST_CASE("new failures of a storage do not delay the retries of others") {
  World world("directory");
  const std::string far = world.place.path() + "/a1";
  // The agent refuses what was marked last, and takes a retry of all marked checkpoints.
  gc::StorageAgents agents = world.agents({"a1"});
  agents.ask = [perform = agents.ask](const AgentId& agent,
                                      const storage::Work& work) -> Result<storage::Done> {
    if (work.remove.size() < 2) return fail(Code::kUnavailable, "busy");
    return perform(agent, work);
  };
  world.save(1);
  REQUIRE(::rename(world.root.c_str(), far.c_str()) == 0);
  gc::Collector collector(world.pool,
                          {.cluster_id = kCluster,
                           .storages = world.storages,
                           .pause = std::chrono::milliseconds(20),
                           .retry = std::chrono::milliseconds(150)},
                          agents);
  for (int number = 2; number <= 9; ++number) {
    world.save(number);
    REQUIRE(remove_tree(world.root));
    collector.look_at(ExperimentId(1));
    Event().wait_for(std::chrono::milliseconds(100));
  }
  CHECK(world.state(1) == "DELETED {}");
  collector.stop();
}

TEST_CASE("files of a shared storage are removed by any agent") {
  World world;
  world.save(1);
  world.end();
  REQUIRE(::rename(world.root.c_str(), (world.place.path() + "/a3").c_str()) == 0);
  REQUIRE(make_directories(world.place.path() + "/a2"));
  REQUIRE(db::mark_for_removal(world.pool, {CheckpointId(name_of(1))}));
  REQUIRE(world.collector(world.agents({"a3"})).remove({CheckpointId(name_of(1))}));
  CHECK_FALSE(path_exists(world.place.path() + "/a3/" + name_of(1)));
}

TEST_CASE("deleting an experiment removes its files") {
  World world;
  world.save(1);
  world.save(2);
  REQUIRE(make_directories(world.root + "/tensorboard/experiment_1/trial_1"));
  REQUIRE(make_directories(world.root + "/tensorboard/experiment_12"));
  CHECK(world.collector().remove_all(ExperimentId(1)).error().code == Code::kFailedPrecondition);
  CHECK(world.there(1));
  world.end();
  REQUIRE(world.collector().remove_all(ExperimentId(1)));
  CHECK_FALSE((world.there(1) || world.there(2)));
  CHECK_FALSE(path_exists(world.root + "/tensorboard/experiment_1"));
  CHECK(path_exists(world.root + "/tensorboard/experiment_12"));
}

TEST_CASE("deleting an experiment without checkpoints removes its TensorBoard files") {
  World world("directory");
  world.end();
  const std::string far = world.place.path() + "/a1";
  REQUIRE(::rename(world.root.c_str(), far.c_str()) == 0);
  REQUIRE(make_directories(far + "/tensorboard/experiment_1/trial_1"));
  REQUIRE(world.collector(world.agents({"a2", "a1"})).remove_all(ExperimentId(1)));
  CHECK_FALSE(path_exists(far + "/tensorboard/experiment_1"));
}

TEST_CASE("unreported checkpoints are removed once they cannot be reported, and foreign files stay") {
  World world;
  world.save(1);
  const auto owner = [](const char* cluster, int trial, int run) {
    return Json{{"cluster", cluster}, {"trial", trial}, {"run", run}};
  };
  // Written by a replaced run.
  world.make_files(name_of(2), owner(kCluster, 1, 1));
  // Written by the current run, which may still report it.
  world.make_files(name_of(3), owner(kCluster, 1, 2));
  world.make_files(name_of(4), owner("another", 1, 1));
  // Without an owner.
  world.make_files(name_of(5));
  // Written by a trial that is newer than the database.
  world.make_files(name_of(6), owner(kCluster, 9, 1));
  REQUIRE(make_directories(world.root + "/tensorboard"));
  REQUIRE(db::load_cluster(world.pool));
  CHECK(world.collector().sweep().value() == 1);
  CHECK_FALSE(world.there(2));
  for (const int number : {1, 3, 4, 5, 6}) CHECK(world.there(number));
  CHECK(path_exists(world.root + "/tensorboard"));

  world.end();
  REQUIRE(world.pool.query("UPDATE cluster SET last_trial = 9"));
  CHECK(world.collector().sweep().value() == 2);
  CHECK_FALSE((world.there(3) || world.there(6)));
  for (const int number : {1, 4, 5}) CHECK(world.there(number));
}

TEST_CASE("files of a DELETED checkpoint that reappear are removed again") {
  World world;
  world.save(1);
  world.end();
  REQUIRE(db::mark_for_removal(world.pool, {CheckpointId(name_of(1))}));
  REQUIRE(world.collector().remove({CheckpointId(name_of(1))}));
  world.make_files(name_of(1));
  CHECK(world.collector().sweep().value() == 1);
  CHECK_FALSE(world.there(1));
}

TEST_CASE("detached checkpoints are removed on request only, never by the policy") {
  World world("directory");
  world.experiment.detached = true;
  world.store.write({core::PutExperiment{world.experiment, false}});
  REQUIRE(world.pool.query("DELETE FROM allocations"));
  world.save(1, 0.9);
  world.save(2, 0.1);
  world.save(3, 0.5);
  world.end();
  REQUIRE(world.collector().collect(ExperimentId(1)));
  CHECK((world.there(1) && world.there(2) && world.there(3)));
  REQUIRE(db::mark_for_removal(world.pool, {CheckpointId(name_of(1))}));
  REQUIRE(world.collector().remove({CheckpointId(name_of(1))}));
  CHECK_FALSE(world.there(1));
  REQUIRE(::rename(world.root.c_str(), (world.root + ".far").c_str()) == 0);
  CHECK(world.collector().remove_all(ExperimentId(1)));
}

TEST_CASE("a detached experiment is deleted although the master cannot reach its bucket") {
  World world;
  world.end();
  const bool detached = GENERATE(true, false);
  const Json away = {{"type", "s3"},
                     {"bucket", "private"},
                     {"endpoint_url", "http://127.0.0.1:9"},
                     {"access_key", "key"},
                     {"secret_key", "secret"}};
  REQUIRE(
      world.pool.query("UPDATE experiments SET detached = $1, config = json_build_object("
                       "'checkpoint_storage', $2::json)",
                       detached, away.dump()));
  world.storages->set({.own = away, .data_dir = {}, .directories = {}, .buckets = {}, .named = {}});
  CHECK(world.collector().remove_all(ExperimentId(1)).has_value() == detached);
}

TEST_CASE("the removal of some files of a checkpoint leaves the others to the user") {
  World world;
  for (const int number : {1, 2}) world.save(number);
  world.end();
  REQUIRE(db::mark_for_removal(world.pool, {CheckpointId(name_of(1))}, false)->size() == 1);
  CHECK(world.state(1) == R"(PARTIALLY_DELETED {"a":10})");
}

TEST_CASE("checkpoints in a storage that is no longer allowed stay, and their removal waits") {
  World world;
  for (const int number : {1, 2, 3}) world.save(number);
  world.end();
  const auto before = world.storages->get();
  world.storages->set({});
  const Status refused = world.collector(world.agents({"a1"})).collect(ExperimentId(1));
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message, Catch::Contains("is not in a storage of this cluster"));
  CHECK((world.there(1) && world.there(2)));
  CHECK(world.asked.empty());
  world.storages->set(*before);
  REQUIRE(world.collector().remove({CheckpointId(name_of(1))}));
  CHECK_FALSE(world.there(1));
}

TEST_CASE("TensorBoard files of the training library and of the Python package are removed") {
  const auto place = TemporaryDirectory::create("gc").value();
  const std::string root = place.path() + "/storage", cluster = name_of(7);
  REQUIRE(make_directories(root + "/tensorboard/experiment_3"));
  REQUIRE(make_directories(root + "/" + cluster + "/tensorboard/experiment/3/trial"));
  REQUIRE(make_directories(root + "/" + cluster + "/tensorboard/experiment/4"));
  const std::vector<std::string> names = storage::tensorboard_names(cluster, ExperimentId(3));
  const storage::Done done = storage::perform({.root = {root}, .remove = names, .list = false});
  CHECK(done.error.empty());
  CHECK(done.removed == names);
  CHECK_FALSE(path_exists(root + "/tensorboard/experiment_3"));
  CHECK_FALSE(path_exists(root + "/" + cluster + "/tensorboard/experiment/3"));
  CHECK(path_exists(root + "/" + cluster + "/tensorboard/experiment/4"));
}

TEST_CASE("no checkpoint name escapes the storage") {
  const auto place = TemporaryDirectory::create("gc").value();
  REQUIRE(make_directories(place.path() + "/storage"));
  REQUIRE(make_directories(place.path() + "/precious"));
  for (const char* name :
       {"../precious", "..", ".", "", "/", "a/b", "tensorboard/experiment_", "tensorboard/experiment_1/..",
        "tensorboard/experiment_../../precious", "x.partial", "tensorboard/experiment/1",
        "0d9a3c6e-52c4-4d0e-9a55-000000000001/tensorboard/experiment/",
        "0d9a3c6e-52c4-4d0e-9a55-000000000001/../../precious"}) {
    INFO(name);
    const storage::Done done =
        storage::perform({.root = {place.path() + "/storage"}, .remove = {name}, .list = false});
    CHECK(done.removed.empty());
  }
  REQUIRE(make_directories(place.path() + "/elsewhere/experiment_1"));
  REQUIRE(::symlink((place.path() + "/elsewhere").c_str(), (place.path() + "/storage/tensorboard").c_str()) ==
          0);
  REQUIRE(::symlink((place.path() + "/precious").c_str(),
                    (place.path() + "/storage/" + name_of(1)).c_str()) == 0);
  const storage::Done done = storage::perform({.root = {place.path() + "/storage"},
                                               .remove = {"tensorboard/experiment_1", name_of(1)},
                                               .list = false});
  CHECK(done.error.empty());
  CHECK(path_exists(place.path() + "/elsewhere/experiment_1"));
  CHECK(path_exists(place.path() + "/precious"));
  CHECK_FALSE(storage::perform({.root = {place.path() + "/none"}, .remove = {name_of(1)}, .list = false})
                  .error.empty());
}

namespace {

/// The same world with a bucket as its storage.
struct BucketWorld : World {
  Store store;
  storage::Bucket bucket = store.bucket();

  BucketWorld() {
    const std::string config = store.config().dump();
    REQUIRE(
        pool.query("UPDATE experiments SET config = jsonb_set(config::jsonb, '{checkpoint_storage}',"
                   " (config->'checkpoint_storage')::jsonb || $1::jsonb)::json",
                   config));
    storages->set({.own = store.config(), .data_dir = {}, .directories = {}, .buckets = {}, .named = {}});
  }
  /// Uploads a checkpoint. Without `whole` it lacks the manifest, like an interrupted upload.
  void upload(int number, RunNumber run, bool whole) {
    REQUIRE(storage::begin_upload(bucket, name_of(number), {kCluster, trial.id, run}));
    REQUIRE(bucket.put(name_of(number) + "/weights", "12345"));
    const Json manifest{{"owner", {{"cluster", kCluster}, {"trial", trial.id.value}, {"run", run}}},
                        {"files", Json::object()}};
    if (whole) REQUIRE(storage::finish_upload(bucket, name_of(number), manifest.dump()));
  }
  void save_there(int number) {
    upload(number, 2, true);
    save(number);
  }
  bool in_bucket(int number) { return !bucket.list(name_of(number), false, 1).value().objects.empty(); }
};

}  // namespace

TEST_CASE("in a bucket the master removes the checkpoints and retries while the store is away") {
  BucketWorld world;
  for (const int number : {1, 2, 3}) world.save_there(number);
  world.end();
  world.store.order(Json::array({{{"kind", "403"}, {"count", 1}}}));
  gc::Collector collector = world.collector();
  CHECK_FALSE(collector.collect(ExperimentId(1)));
  CHECK(world.state(1) == R"(PARTIALLY_DELETED marked {"a":10})");
  REQUIRE(collector.remove({CheckpointId(name_of(1)), CheckpointId(name_of(2))}));
  CHECK((!world.in_bucket(1) && !world.in_bucket(2) && world.in_bucket(3)));
  CHECK(world.state(1) == "DELETED {}");
  CHECK(world.asked.empty());
}

TEST_CASE(
    "in a bucket interrupted uploads are removed when their run is replaced or their experiment deleted") {
  BucketWorld world;
  world.save_there(1);
  world.upload(2, 1, false);  // By the previous run.
  world.upload(3, 2, false);  // By the current run, which may still be uploading.
  gc::Collector collector = world.collector();
  REQUIRE(collector.sweep());
  CHECK((world.in_bucket(1) && !world.in_bucket(2) && world.in_bucket(3)));
  world.end();
  REQUIRE(collector.remove_all(ExperimentId(1)));
  CHECK(world.store.count() == 0);
}

}  // namespace det::test
