// Asynchronous saving and loading of checkpoints, and the order of their callbacks.
#include "harness/src/checkpoint/checkpoint.h"

#include <ATen/ops/equal.h>
#include <sys/file.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "checkpoint_fixture.h"
#include "common/base/json.h"
#include "det/checkpoint.h"
#include "harness/src/checkpoint/checkpoint_dir.h"
#include "harness/src/checkpoint/checkpoint_saver.h"
#include "harness/src/trainer/context_state.h"

namespace det {
namespace {

namespace fs = std::filesystem;
using testing::at_batch;
using testing::Fixture;
using testing::save_whole;

struct Storage {
  TemporaryDirectory directory = TemporaryDirectory::create().value();
  std::string path = directory.path() + "/checkpoints";
  std::size_t entries() const {
    return path_exists(path) ? std::distance(fs::directory_iterator(path), fs::directory_iterator()) : 0;
  }
};

/// Records the calls of its hooks.
struct Watcher : Callback {
  void on_checkpoint_load_start(const std::string&) override { events.push_back("load"); }
  void on_checkpoint_save_start(Json& metadata) override {
    metadata["note"] = "mine", metadata["steps_completed"] = -1;
    events.push_back("save");
  }
  void on_checkpoint_write_end(const std::string& directory) override {
    if (fail) throw std::runtime_error("no more");
    hidden = directory.ends_with(".partial") && path_exists(directory + "/state_dict.pth");
    std::ofstream(directory + "/extra.txt") << "extra";
    events.push_back("written");
  }
  std::vector<std::string> events;
  bool hidden = false, fail = false;
};

TEST_CASE("a saved trial is restored exactly") {
  Storage storage;
  Fixture first(1, storage.path), second(2, storage.path);
  first.add_all(), second.add_all();
  first.train(4);
  const std::string directory = save_whole(first.run, first.wrapped, 4);
  const std::string expected = first.digest();
  first.train(1);
  const TrialState state = load_checkpoint(second.run, second.wrapped, directory);
  CHECK(second.digest() == expected);
  CHECK(state.progress.steps_completed == 4);
  CHECK(state.window == Json({{"loss", 0.25}}));
  CHECK(state.same_trial);
  for (const char* file :
       {"state_dict.pth", "trial_state.json", "load_data.json", "metadata.json", "manifest.json"}) {
    CHECK(path_exists(directory + "/" + file));
  }
}

TEST_CASE("a checkpoint without the fields of later releases is restored with their defaults") {
  Storage storage;
  Fixture fixture(1, storage.path);
  const std::string directory = save_whole(fixture.run, fixture.wrapped, 4);
  Json state = parse_json(read_file(directory + "/trial_state.json").value()).value();
  for (const std::string field : {"stop_length", "validation_due"}) CHECK(state.erase(field) == 1);
  auto earlier = CheckpointWriter::create(storage.path, "earlier").value();
  REQUIRE(earlier.write("state_dict.pth", read_file(directory + "/state_dict.pth").value()).has_value());
  REQUIRE(earlier.write("trial_state.json", dump_json(state)).has_value());
  REQUIRE(earlier.commit().has_value());
  const TrialState loaded = load_checkpoint(fixture.run, fixture.wrapped, storage.path + "/earlier");
  CHECK(loaded.progress.steps_completed == 4);
  CHECK(loaded.progress.stop_length == -1);
  CHECK_FALSE(loaded.progress.validation_due);
}

TEST_CASE("another trial's checkpoint restores weights but not generators") {
  Storage storage;
  Fixture first(1, storage.path), second(2, storage.path);
  const std::string directory = save_whole(first.run, first.wrapped, 4);
  second.run.info.trial_id = 6;
  const std::string generators = generator_bytes(second.run.device);
  CHECK_FALSE(load_checkpoint(second.run, second.wrapped, directory).same_trial);
  CHECK(at::equal(second.model->parameters()[0], first.model->parameters()[0]));
  CHECK(generator_bytes(second.run.device) == generators);
}

/// The state without its models, as bytes.
std::string rest_of(Fixture& fixture) {
  pickle::Dict rest = *fixture.state().as<pickle::Dict>();
  std::erase_if(rest.items, [](const auto& item) { return item.first == "models_state_dict"; });
  return testing::file_bytes(rest);
}

TEST_CASE("another trial's checkpoint changes no option, schedule, callback or optimizer state") {
  Storage storage;
  Fixture first(1, storage.path), second(2, storage.path);
  first.add_all(), second.add_all();
  first.train(4);
  first.wrapped.lr_schedulers[0].scheduler->step();
  first.wrapped.callbacks[0].second->load_state_dict({{"count", 4}});
  const std::string directory = save_whole(first.run, first.wrapped, 4);
  second.run.info.trial_id = 6;
  const std::string before = rest_of(second);
  CHECK_FALSE(load_checkpoint(second.run, second.wrapped, directory).same_trial);
  CHECK(at::equal(second.model->parameters()[0], first.model->parameters()[0]));
  CHECK(rest_of(second) == before);
}

TEST_CASE("a checkpoint of another program restores optimizer state but no learning rate") {
  Storage storage;
  Fixture first(1), second(2);
  first.add_all(), second.add_all();
  first.train(4);
  first.wrapped.lr_schedulers[0].scheduler->step();
  fs::create_directories(storage.path);
  pickle::save(first.state(), storage.path + "/state_dict.pth");
  CHECK_FALSE(load_checkpoint(second.run, second.wrapped, storage.path).same_trial);
  const auto optimizer_state = [](const Fixture& fixture) {
    return testing::file_bytes(pickle::member(
        collect_optimizer(parameter_names(fixture.wrapped), *fixture.wrapped.optimizers[0]), "state"));
  };
  CHECK(optimizer_state(second) == optimizer_state(first));
  CHECK(second.wrapped.optimizers[0]->param_groups()[0].options().get_lr() == 0.5);
  CHECK(second.wrapped.lr_schedulers[0].scheduler->get_last_lr() == std::vector<double>{0.5});
}

TEST_CASE("a save holds the state of its call, and the next save waits for it") {
  Storage storage;
  Fixture fixture(1, storage.path);
  fixture.add_all();
  fixture.wrapped.callbacks.clear();
  CheckpointSaver saver(fixture.run, fixture.wrapped);
  std::vector<std::string> uuids, digests;
  for (int batch = 1; batch <= 4; ++batch) {
    fixture.train(1);
    digests.push_back(fixture.digest());
    uuids.push_back(saver.save(at_batch(batch)));
  }
  fixture.train(1);
  saver.wait();
  const auto records = saver.finished();
  REQUIRE(records.size() == 4);
  CHECK(saver.finished().empty());
  for (int i = 0; i < 4; ++i) {
    CHECK(records[i].uuid == uuids[i]);
    CHECK(records[i].steps_completed == i + 1);
    CHECK(records[i].resources.at("state_dict.pth") == static_cast<std::int64_t>(digests[i].size()));
    CHECK(read_file(storage.path + "/" + uuids[i] + "/state_dict.pth").value() == digests[i]);
    CHECK(verify_checkpoint(storage.path + "/" + uuids[i]).has_value());
  }
  CHECK(find_latest_checkpoint(storage.path) == storage.path + "/" + uuids[3]);
}

TEST_CASE("callbacks run before a checkpoint is visible, and files they add belong to it") {
  Storage storage;
  Fixture fixture(1, storage.path);
  auto watcher = std::make_shared<Watcher>();
  fixture.wrapped.callbacks.emplace_back("watcher", watcher);
  CheckpointSaver saver(fixture.run, fixture.wrapped);
  const std::string directory = storage.path + "/" + saver.save(at_batch(3));
  CHECK(watcher->events == std::vector<std::string>{"save"});
  CHECK_FALSE(path_exists(directory));  // independent of the writer's speed: the commit needs this thread
  saver.wait();
  CHECK(watcher->events == std::vector<std::string>{"save", "written"});
  CHECK(watcher->hidden);
  const auto records = saver.finished();
  REQUIRE(records.size() == 1);
  CHECK(records[0].resources.at("extra.txt") == 5);
  CHECK(records[0].metadata["note"] == "mine");
  CHECK(records[0].metadata["steps_completed"] == 3);
  CHECK(verify_checkpoint(directory).has_value());
  CHECK(load_checkpoint(fixture.run, fixture.wrapped, directory).progress.steps_completed == 3);
  CHECK(watcher->events.back() == "load");
}

TEST_CASE("a throwing callback discards only its own checkpoint") {
  Storage storage;
  Fixture fixture(1, storage.path);
  auto watcher = std::make_shared<Watcher>();
  fixture.wrapped.callbacks.emplace_back("watcher", watcher);
  CheckpointSaver saver(fixture.run, fixture.wrapped);
  watcher->fail = true;
  saver.save(at_batch(1));
  CHECK_THROWS_WITH(saver.wait(), "no more");
  saver.wait();
  CHECK(storage.entries() == 0);
  CHECK(saver.finished().empty());
  watcher->fail = false;
  saver.save(at_batch(2));
  saver.wait();
  CHECK(saver.finished().size() == 1);
}

TEST_CASE("destroying a saver with pending callbacks discards the checkpoint") {
  Storage storage;
  Fixture fixture(1, storage.path);
  fixture.wrapped.callbacks.emplace_back("watcher", std::make_shared<Watcher>());
  CheckpointSaver(fixture.run, fixture.wrapped).save(at_batch(1));
  CHECK(storage.entries() == 0);
  fixture.wrapped.callbacks.clear();
  CheckpointSaver(fixture.run, fixture.wrapped).save(at_batch(2));
  CHECK(storage.entries() == 1);
}

TEST_CASE("a failed save is reported once, and a later save can succeed") {
  Storage storage;
  std::ofstream(storage.path) << "a file in the way";
  Fixture fixture(1, storage.path);
  CheckpointSaver saver(fixture.run, fixture.wrapped);
  saver.save(at_batch(1));
  saver.wait();
  CHECK_THROWS_WITH(saver.finished(), Catch::Contains("was not saved") && Catch::Contains(storage.path));
  CHECK(saver.finished().empty());
  fs::remove(storage.path);
  saver.save(at_batch(2));
  saver.wait();
  CHECK(saver.finished().at(0).steps_completed == 2);
}

TEST_CASE("damage in any file of a checkpoint throws an error that names the file") {
  Storage storage;
  Fixture fixture(1, storage.path);
  fixture.add_all();
  fixture.train(2);
  const std::string directory = save_whole(fixture.run, fixture.wrapped, 2);
  for (const std::string name : {"state_dict.pth", "trial_state.json", "load_data.json", "metadata.json"}) {
    const std::string file = directory + "/" + name, whole = read_file(file).value();
    for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 50) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      std::ofstream(file, std::ios::binary) << damaged;
      CHECK_THROWS_WITH(load_checkpoint(fixture.run, fixture.wrapped, directory),
                        Catch::Contains(directory) && Catch::Contains(name + " is damaged"));
    }
    std::ofstream(file, std::ios::binary) << whole;
  }
  CHECK(load_checkpoint(fixture.run, fixture.wrapped, directory).progress.steps_completed == 2);
  fs::remove(directory + "/manifest.json");
  CHECK_THROWS_WITH(load_checkpoint(fixture.run, fixture.wrapped, directory),
                    Catch::Contains("no complete checkpoint"));
}

TEST_CASE("leftovers of dead writers are removed, files of live writers stay") {
  Storage storage;
  const auto age = [&](const std::string& path) {
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::minutes(11));
  };
  fs::create_directories(storage.path + "/dead.partial/code");
  std::ofstream(storage.path + "/dead.partial/weights") << "1";
  age(storage.path + "/dead.partial/code"), age(storage.path + "/dead.partial");
  auto living = CheckpointWriter::create(storage.path, "living").value();
  // Kept, because a file in it is recent. On some storages locks do not extend to other machines.
  CHECK(storage.entries() == 2);
  age(living.directory()), age(storage.path + "/dead.partial/weights");
  auto other = CheckpointWriter::create(storage.path, "other").value();
  CHECK(storage.entries() == 2);
  CHECK_FALSE(path_exists(storage.path + "/dead.partial"));
  CHECK(living.commit().has_value());
  CHECK(other.commit().has_value());
  CHECK(path_exists(storage.path + "/living/manifest.json"));
}

TEST_CASE("a file changed after note() is hashed again") {
  Storage storage;
  auto writer = CheckpointWriter::create(storage.path, "u").value();
  REQUIRE(writer.write("a", "first").has_value());
  writer.note("a", 1);
  REQUIRE(writer.write("a", "changed").has_value());
  REQUIRE(writer.commit().has_value());
  CHECK(verify_checkpoint(storage.path + "/u").has_value());
}

/// Stands for a user's trial class.
struct TwoModels {
  explicit TwoModels(TrialContext& context, int extra = 0) : extra(extra) {
    context.state().wrapped.models = {a.ptr(), b.ptr()};
    width = context.state().run.info.hparams.at("width").get<int>();
  }
  torch::nn::Linear a{2, 3}, b{3, 1};
  int width = 0, extra = 0;
};

TEST_CASE("a trial is rebuilt from a checkpoint with its hyperparameters and weights") {
  Storage storage;
  Fixture fixture(1, storage.path);
  torch::nn::Linear a(2, 3), b(3, 1);
  fixture.wrapped.models = {a.ptr(), b.ptr()};
  fixture.run.info.hparams = {{"width", 12}};
  const std::string directory = save_whole(fixture.run, fixture.wrapped, 9);
  const auto trial = load_trial_from_checkpoint_path<TwoModels>(directory, 4);
  CHECK(trial->width == 12);
  CHECK(trial->extra == 4);
  CHECK(at::equal(trial->a->weight, a->weight));
  CHECK(at::equal(trial->b->bias, b->bias));
  CHECK(trial.context->get_data_config() == Json({{"path", "/d"}}));
  torch::nn::Linear only(3, 1), wrong(5, 1);
  load_model(directory, *only, 1);
  CHECK(at::equal(only->weight, b->weight));
  CHECK_THROWS_WITH(load_model(directory, *only, 2),
                    Catch::Contains(directory) && Catch::Contains("holds no model 2"));
  CHECK_THROWS_WITH(load_model(directory, *wrong, 1),
                    Catch::Contains(directory) && Catch::Contains("model_1.weight"));
  export_safetensors(directory, storage.directory.path() + "/b.safetensors", 1);
  torch::nn::Linear exported(3, 1);
  load_safetensors(storage.directory.path() + "/b.safetensors", *exported);
  CHECK(at::equal(exported->weight, b->weight));
}

TEST_CASE("weights load from the checkpoint layouts of older releases") {
  Storage storage;
  const torch::nn::Linear from(3, 2);
  pickle::Dict state;
  const auto [file, plural] = GENERATE(table<std::string, bool>(
      {{"determined/state_dict.pth", true}, {"pedl/state_dict.pth", false}, {"checkpoint.pt", false}}));
  if (plural) state.add("models_state_dict", pickle::List{collect_model(*from)});
  if (!plural) state.add("model_state_dict", collect_model(*from));
  fs::create_directories(fs::path(storage.path + "/" + file).parent_path());
  pickle::save(state, storage.path + "/" + file);
  torch::nn::Linear to(3, 2);
  load_model(storage.path, *to);
  CHECK(at::equal(from->weight, to->weight));
}

}  // namespace
}  // namespace det
