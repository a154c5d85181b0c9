// The guarantees of checkpoints on every kind of storage: the same tests on a shared directory, a task-local
// directory and a bucket.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "common/storage/bucket_checkpoints.h"
#include "harness/src/checkpoint/checkpoint_dir.h"
#include "harness/src/checkpoint/checkpoint_start.h"
#include "harness/src/client/trial_info.h"
#include "harness/src/core_api/core_state.h"
#include "tests/storage/store.h"

namespace det {
namespace {

namespace fs = std::filesystem;

std::string uuid_of(int number) { return "00000000-0000-4000-8000-00000000000" + std::to_string(number); }

/// Records reports instead of sending them.
struct Recorder final : Client {
  void report_metrics(const std::string&, std::int64_t, const Json&) override {}
  void report_progress(double, std::int64_t) override {}
  void report_checkpoint(const CheckpointRecord& record) override { checkpoints.push_back(record); }
  void report_invalid_hp() override {}
  bool should_preempt() const override { return false; }
  void acknowledge_preemption() override {}
  bool flush(std::chrono::seconds) override { return true; }
  std::vector<CheckpointRecord> checkpoints;
};

/// One kind of storage, as a configuration names it.
class Place {
 public:
  explicit Place(const std::string& kind) : kind_(kind) {
    Json storage;
    if (kind == "shared_fs")
      storage = {{"type", kind}, {"host_path", disk_.path()}, {"storage_path", "storage"}};
    if (kind == "directory") storage = {{"type", kind}, {"container_path", disk_.path() + "/storage"}};
    if (kind == "s3") storage = store_.emplace().config();
    config_ = {{"checkpoint_storage", std::move(storage)}};
    info = machine();
  }
  /// A fresh machine on each call, without local copies of a bucket's checkpoints.
  TrialInfo machine() {
    const std::string cache = disk_.path() + "/machine" + std::to_string(++machines_);
    ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    return local_trial_info(config_, "", "").value();
  }

  CheckpointWriter writer(int number) {
    return CheckpointWriter::create(info.checkpoint_dir, uuid_of(number), {"cluster", 7, 2}, info.bucket)
        .value();
  }
  void save(int number) {
    CheckpointWriter made = writer(number);
    REQUIRE(made.write("weights", "12345"));
    REQUIRE(made.write("trial_state.json", "{}"));
    REQUIRE(made.write("metadata.json", "{\"steps_completed\": " + std::to_string(number) + "}"));
    REQUIRE(made.commit());
  }
  std::string file(int number, const std::string& name) const {
    return store_ ? store_->file(uuid_of(number) + "/" + name)
                  : disk_.path() + "/storage/" + uuid_of(number) + "/" + name;
  }
  void lose(int number) {
    if (!store_) fs::remove_all(disk_.path() + "/storage/" + uuid_of(number));
    if (store_) REQUIRE(storage::perform(*info.bucket, {uuid_of(number)}, false).error.empty());
  }
  /// Starts a run on another machine from checkpoint 3, then 2, then 1, then from the beginning.
  std::string start() {
    TrialInfo other = machine();
    other.latest_checkpoint = uuid_of(3);
    DistributedContext alone{RankInfo{}};
    return agree_on_start(alone, other,
                          [&](const std::string& uuid, const std::string& reason) -> Result<std::string> {
                            told.push_back(reason);
                            return uuid == uuid_of(1) ? "" : uuid_of(uuid.back() - '0' - 1);
                          });
  }
  std::string latest() {
    const TrialInfo other = machine();
    const auto found = find_latest_checkpoint(other.checkpoint_dir, other.bucket.get());
    return found ? fs::path(*found).filename().string() : "";
  }
  /// Number of objects in the bucket, or of entries in the directory.
  std::size_t count() const {
    if (store_) return store_->count();
    std::error_code error;
    const fs::directory_iterator all(disk_.path() + "/storage", error);
    return error ? 0 : static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  CoreContext core(Recorder*& client) {
    auto state = std::make_unique<CoreState>();
    auto recorder = std::make_unique<Recorder>();
    client = recorder.get();
    state->client = std::move(recorder);
    state->distributed = std::make_shared<DistributedContext>();
    const TrialInfo other = machine();
    state->info.checkpoint_storage = other.checkpoint_dir;
    state->bucket = other.bucket;
    return CoreContext(std::move(state));
  }
  const test::Store* store() const { return store_ ? &*store_ : nullptr; }
  TrialInfo info;
  std::vector<std::string> told;

 private:
  std::string kind_;
  TemporaryDirectory disk_ = TemporaryDirectory::create("storage").value();
  std::optional<test::Store> store_;
  Json config_;
  int machines_ = 0;
};

std::string kinds() { return GENERATE("shared_fs", "directory", "s3"); }

}  // namespace

TEST_CASE("every storage shows a checkpoint complete after its commit and not before") {
  Place place(kinds());
  {
    CheckpointWriter dropped = place.writer(1);
    REQUIRE(dropped.write("weights", "12345"));
    CHECK(place.latest().empty());
  }
  CHECK(place.latest().empty());
  CHECK(place.count() == 0);
  place.save(3);
  CHECK(place.start() == uuid_of(3));
  CHECK(place.told.empty());
}

TEST_CASE("every storage falls back from a damaged checkpoint to the previous one") {
  Place place(kinds());
  for (const int number : {1, 2, 3}) place.save(number);
  SECTION("changed bytes") { std::ofstream(place.file(3, "weights")) << "12346"; }
  SECTION("truncated file") { fs::resize_file(place.file(3, "weights"), 3); }
  SECTION("a file is missing") { fs::remove(place.file(3, "weights")); }
  SECTION("the manifest is missing") { fs::remove(place.file(3, "manifest.json")); }
  SECTION("the manifest is malformed") { std::ofstream(place.file(3, "manifest.json")) << "{"; }
  SECTION("the checkpoint is missing") { place.lose(3); }
  CHECK(place.start() == uuid_of(2));
  CHECK(place.told.size() == 1);
  CHECK(place.latest() == uuid_of(2));
  for (const int number : {1, 2}) std::ofstream(place.file(number, "weights")) << "x";
  CHECK(place.start().empty());
  CHECK(place.latest().empty());
}

TEST_CASE("the Core API stores, restores, downloads and deletes on every storage") {
  Place place(kinds());
  Recorder* recorder = nullptr;
  CoreContext writer = place.core(recorder);
  const auto stored = writer.checkpoint().store_path({{"steps_completed", 4}, {"note", "x"}},
                                                     [](const std::string& directory) {
                                                       fs::create_directories(directory + "/deep");
                                                       std::ofstream(directory + "/deep/weights") << "12345";
                                                     });
  REQUIRE(recorder->checkpoints.size() == 1);
  CHECK(recorder->checkpoints[0].resources.at("deep/weights") == 5);
  CHECK(recorder->checkpoints[0].resources.contains("manifest.json"));

  CoreContext reader = place.core(recorder);
  CHECK(reader.checkpoint().get_metadata(stored.uuid)["note"] == "x");
  std::string text;
  reader.checkpoint().restore_path(stored.uuid, [&](const std::string& directory) {
    text = read_file(directory + "/deep/weights").value();
  });
  CHECK(text == "12345");
  const auto target = TemporaryDirectory::create("download").value();
  reader.checkpoint().download(stored.uuid, target.path());
  CHECK(read_file(target.path() + "/deep/weights").value() == "12345");
  reader.checkpoint().delete_(stored.uuid);
  CHECK(place.count() == 0);
  CHECK_THROWS(place.core(recorder).checkpoint().restore_path(stored.uuid, [](const std::string&) {}));
}

TEST_CASE("an unwritable bucket stops a run at its start, and a failed save leaves no objects") {
  Place place("s3");
  place.store()->order(Json::array({{{"method", "PUT"}, {"kind", "403"}, {"count", 1}}}));
  CHECK_THROWS_WITH(place.start(), Catch::Contains("refused (AccessDenied"));
  place.store()->order(Json::array());
  {
    CheckpointWriter made = place.writer(1);
    REQUIRE(made.write("weights", "12345"));
    place.store()->order(
        Json::array({{{"method", "PUT"}, {"match", "manifest"}, {"kind", "403"}, {"count", 1}}}));
    CHECK_FALSE(made.commit());
  }
  CHECK(place.count() == 0);
}

TEST_CASE("a bucket's keys are not in the configuration stored in checkpoints") {
  Place place("s3");
  CHECK(place.info.experiment_config["checkpoint_storage"]["secret_key"] == "****");
  CHECK(place.info.experiment_config.dump().find("test/secret+key") == std::string::npos);
}

}  // namespace det
