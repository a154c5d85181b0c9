// The examples of the Core API guide.
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>

#include "common/base/files.h"

// The guide's program, with its main renamed.
#define main core_loop_main
#include "guides/core_loop.cc"
#undef main
#include "guides/core_detached.h"
#include "guides/core_ranks.h"
#include "test_paths.h"

namespace {

class RunDirectory {
 public:
  RunDirectory() : before_(std::filesystem::current_path()) { std::filesystem::current_path(path()); }
  ~RunDirectory() { std::filesystem::current_path(before_); }
  const std::string& path() const { return directory_.path(); }
  /// The only checkpoint in ./checkpoints.
  std::string checkpoint() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator("checkpoints")) {
      if (!std::filesystem::exists(entry.path() / "line.txt")) continue;
      REQUIRE(found.empty());
      found = entry.path().string();
    }
    REQUIRE_FALSE(found.empty());
    return found;
  }

 private:
  det::TemporaryDirectory directory_ = det::TemporaryDirectory::create().value();
  std::filesystem::path before_;
};

TEST_CASE("the loop of the Core API guide fits its line and saves it") {
  RunDirectory folder;
  std::filesystem::copy(det::source_path("/tests/harness/guides/core.yaml"), "core.yaml");
  REQUIRE(core_loop_main() == 0);
  const Line line = load(folder.checkpoint());
  CHECK(line.slope == Approx(3).margin(1e-3));
  CHECK(line.offset == Approx(-1).margin(1e-3));
}

TEST_CASE("the media of the Core API guide are files without a cluster") {
  RunDirectory folder;
  det::CoreContext core = det::init_core();
  report_residuals(core, 3, {0.5, 1});
  report_residuals(core, 3, {0.5, 2});
  CHECK(det::read_file("checkpoints/media/note/3.txt").value().starts_with("largest: 2"));
  CHECK(det::read_file("checkpoints/media/residuals/3.json").value().find("edges") != std::string::npos);
}

TEST_CASE("the loop of the Core API guide saves and exits when interrupted") {
  RunDirectory folder;
  {
    det::CoreContext core = det::init_core();
    REQUIRE(::raise(SIGINT) == 0);
    REQUIRE(train(core, 100) == 0);
  }
  Line line;
  (void)step(line, 0.1);
  const Line saved = load(folder.checkpoint());
  CHECK(saved.slope == line.slope);
  CHECK(saved.offset == line.offset);
}

TEST_CASE("a single process acts as all ranks") {
  RunDirectory folder;
  det::CoreContext core = det::init_core();
  CHECK(mean_over_ranks(core, 2.5) == 2.5);
  const std::string uuid = store_shards(core, 3, "mine");
  CHECK(det::read_file("checkpoints/" + uuid + "/shard-0").value() == "mine");
  CHECK(core.checkpoint().get_metadata(uuid).at("steps_completed") == 3);
}

#ifdef DET_CLUSTER
TEST_CASE("a detached program without a master gets an error that names the master") {
  ::setenv("DET_MASTER", "127.0.0.1:9", 1);
  CHECK_THROWS_WITH(begin_anywhere(), Catch::Contains("127.0.0.1:9"));
  ::unsetenv("DET_MASTER");
}
#endif

}  // namespace
