// The Core API on several ranks: joint checkpoints and preemption.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/exit_codes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "harness/src/checkpoint/checkpoint_dir.h"
#include "small_disk.h"
#include "tests/storage/store.h"

namespace det {
namespace {

struct Ended {
  std::set<std::string> lines;
  int code = 0;
};

Ended launch(const std::string& scenario, const std::string& storage, int ranks = 2,
             const std::string& argument = "") {
  const auto result =
      run_process({.argv = {DET_LAUNCH, "--nproc-per-node", std::to_string(ranks), "--", "sh", "-c",
                            // The launcher returns only the first rank's exit code, so each rank prints its
                            // own.
                            "\"$@\"; echo code $?", "sh", DET_CORE_PROGRAM, scenario, storage, argument}})
          .value();
  INFO(result.err);
  const auto lines = split(result.out, '\n');
  return {{lines.begin(), lines.end()}, result.status.code};
}

std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> names;
  if (!path_exists(directory)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

bool starts(const Ended& ended, const std::string& prefix) {
  for (const std::string& line : ended.lines)
    if (line.starts_with(prefix)) return true;
  return false;
}

TEST_CASE("shards of two ranks form one checkpoint that both can restore") {
  const auto storage = TemporaryDirectory::create().value();
  const Ended ended = launch("shards", storage.path());
  REQUIRE(entries(storage.path()).size() == 1);
  const std::string uuid = entries(storage.path())[0], directory = storage.path() + "/" + uuid;
  CHECK(ended.lines.contains("[rank=0] locked"));
  CHECK(ended.lines.contains("[rank=1] locked"));
  CHECK(ended.lines.contains("[rank=0] stored " + uuid));
  CHECK(ended.lines.contains("[rank=1] stored " + uuid));
  CHECK(ended.lines.contains("[rank=0] read of rank 1"));
  CHECK(ended.lines.contains("[rank=1] read of rank 0"));
  CHECK(starts(ended, "[rank=0] checkpoint batch 5"));
  CHECK_FALSE(starts(ended, "[rank=1] checkpoint"));
  CHECK(verify_checkpoint(directory));
  CHECK(entries(directory) ==
        std::vector<std::string>{"both", "manifest.json", "metadata.json", "own0", "own1"});
  CHECK(parse_json(read_file(directory + "/metadata.json").value()).value() ==
        Json{{"steps_completed", 5}, {"rank0", 0}, {"rank1", 1}});
}

TEST_CASE("each rank uploads its own shards to a bucket, and a failure on one leaves no objects") {
  const test::Store store;
  const auto place = TemporaryDirectory::create().value();
  REQUIRE(
      write_file_atomic(place.path() + "/const.yaml", Json{{"checkpoint_storage", store.config()}}.dump()));
  ::setenv("XDG_CACHE_HOME", (place.path() + "/cache").c_str(), 1);
  const Ended ended = launch("shards", place.path() + "/const.yaml");
  CHECK(ended.lines.contains("[rank=0] read of rank 1"));
  CHECK(ended.lines.contains("[rank=1] read of rank 0"));
  const auto listing = store.bucket().list("", false).value();
  std::vector<std::string> names;
  for (const auto& object : listing.objects) names.push_back(object.key.substr(37));
  CHECK(names == std::vector<std::string>{"both", "manifest.json", "metadata.json", "own0", "own1"});
  const Ended failed = launch("one-fails", place.path() + "/const.yaml");
  CHECK(failed.lines.contains("[rank=0] code 3"));
  CHECK(store.count() == names.size());
}

TEST_CASE("inconsistent ranks all fail with the same reason and leave no files") {
  const auto [scenario, reason] = GENERATE(table<std::string, std::string>({
      {"other-content", "both is there on ranks 0, 1 with different contents"},
      {"other-metadata", "rank 1 says steps_completed = 1"},
      {"no-steps", "\"steps_completed\" must be there"},
      {"one-fails", "the disk of rank 1 is on fire"},
  }));
  const auto storage = TemporaryDirectory::create().value();
  const Ended ended = launch(scenario, storage.path());
  CAPTURE(scenario, ended.lines);
  for (const char* rank : {"[rank=0] ", "[rank=1] "}) {
    CHECK(ended.lines.contains(std::string(rank) + "code 3"));
    bool said = false;
    for (const std::string& line : ended.lines) {
      said = said || (line.starts_with(rank + std::string("error: ")) && line.find(reason) != line.npos);
    }
    CHECK(said);
  }
  CHECK(entries(storage.path()).empty());
}

TEST_CASE("ranks that upload the same directory store it once, and a rank may upload none") {
  const auto storage = TemporaryDirectory::create().value(), source = TemporaryDirectory::create().value();
  REQUIRE(make_directories(source.path() + "/deep"));
  REQUIRE(write_file_atomic(source.path() + "/deep/weights", "abc"));
  REQUIRE(write_file_atomic(source.path() + "/manifest.json", "of another checkpoint"));
  (void)launch("upload", storage.path(), 3, source.path());
  REQUIRE(entries(storage.path()).size() == 1);
  const std::string directory = storage.path() + "/" + entries(storage.path())[0];
  CHECK(verify_checkpoint(directory));
  CHECK(read_file(directory + "/deep/weights").value() == "abc");
  CHECK(path_exists(source.path() + "/deep/weights"));
}

TEST_CASE("a full disk ends every rank of a sharded upload with the exit code of full storages") {
  const auto storage = TemporaryDirectory::create().value(), source = TemporaryDirectory::create().value();
  REQUIRE(write_file_atomic(source.path() + "/weights", std::string(1 << 20, 'x')));
  const testing::SmallDisk disk(storage.path());
  if (!disk.mounted()) {
    WARN("no file system can be mounted here");
    return;
  }
  const Ended ended = launch("upload-uncaught", storage.path(), 2, source.path());
  CAPTURE(ended.lines);
  for (const char* rank : {"[rank=0] ", "[rank=1] "})
    CHECK(ended.lines.contains(rank + ("code " + std::to_string(kExitStorageFull))));
}

TEST_CASE("without shard only the chief may save, and other ranks get an error") {
  const auto storage = TemporaryDirectory::create().value();
  const Ended ended = launch("chief-alone", storage.path());
  CHECK(ended.lines.contains("[rank=0] code 0"));
  CHECK(starts(ended, "[rank=1] error: upload: without shard only the chief may call it (this is rank 1)"));
  CHECK(entries(storage.path()).size() == 1);
}

TEST_CASE("an interrupt of the launcher is preemption on every rank, at the same call") {
  auto child = Child::spawn({.argv = {DET_LAUNCH, "--nproc-per-node", "2", "--", DET_CORE_PROGRAM, "preempt"},
                             .out = Stream::pipe()})
                   .value();
  std::string out;
  const auto read_until = [&](const auto& done) {
    char buffer[256];
    ssize_t got = 0;
    while (!done() && (got = ::read(child.out().get(), buffer, sizeof buffer)) > 0) out.append(buffer, got);
  };
  read_until(
      [&] { return out.find("[rank=0] ready") != out.npos && out.find("[rank=1] ready") != out.npos; });
  REQUIRE(child.signal(SIGTERM));
  read_until([] { return false; });
  CHECK_THAT(out, Catch::Contains("[rank=0] preempted"));
  CHECK_THAT(out, Catch::Contains("[rank=1] preempted"));
  CHECK(child.wait(std::chrono::seconds(60)).value().ok());
}

TEST_CASE("a Core API program updates the heartbeat file with each report") {
  const auto directory = TemporaryDirectory::create().value();
  const auto result = run_process({.argv = {DET_CORE_PROGRAM, "report"},
                                   .env = environment_with({"DET_RUN_DIR=" + directory.path()})})
                          .value();
  REQUIRE(result.ok());
  CHECK(path_exists(directory.path() + "/heartbeat"));
}

TEST_CASE("a Core API program links neither LibTorch nor gRPC") {
  const auto libraries = run_process({.argv = {"ldd", DET_CORE_PROGRAM}}).value();
  CHECK_THAT(libraries.out, Catch::Contains("libdet_core"));
  CHECK_THAT(libraries.out,
             !Catch::Contains("libtorch") && !Catch::Contains("libgrpc") && !Catch::Contains("libprotobuf"));
  const auto result = run_process({.argv = {DET_CORE_PROGRAM, "report"}}).value();
  CHECK(result.out == "training   batch 1  loss 0.5\nvalidation batch 1  accuracy 0.25\n");
  CHECK(result.ok());
}

}  // namespace
}  // namespace det
