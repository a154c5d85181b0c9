// `det dev`: its arguments, and the watch of a directory.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "cli/dev/dev_session.h"
#include "cli/dev/directory_watch.h"
#include "fake_master.h"

namespace det::cli::test {
namespace {

using namespace std::chrono_literals;

/// Events are queued by the call that makes the change, so they can be read at once.
bool changed(DirectoryWatch& watch) {
  const auto any = watch.changed(0ms);
  REQUIRE(any);
  return *any;
}

void write(const std::string& path, const std::string& text = "x") { REQUIRE(write_file_atomic(path, text)); }

}  // namespace

TEST_CASE("a directory watch reports files that are written, moved and removed, also in new directories") {
  const TemporaryDirectory home = TemporaryDirectory::create().value();
  write(home.path() + "/model_def.cpp");
  auto watch = DirectoryWatch::create(home.path());
  REQUIRE(watch);
  CHECK_FALSE(changed(*watch));
  write(home.path() + "/model_def.cpp", "y");
  CHECK(changed(*watch));
  CHECK_FALSE(changed(*watch));
  REQUIRE(make_directories(home.path() + "/layers/deep"));
  CHECK(changed(*watch));
  write(home.path() + "/layers/deep/norm.h");
  CHECK(changed(*watch));
  std::filesystem::rename(home.path() + "/layers/deep/norm.h", home.path() + "/norm.h");
  CHECK(changed(*watch));
  REQUIRE(remove_tree(home.path() + "/norm.h"));
  CHECK(changed(*watch));
  CHECK_FALSE(changed(*watch));
}

TEST_CASE("a directory watch leaves out the files that a code archive leaves out") {
  const TemporaryDirectory home = TemporaryDirectory::create().value();
  REQUIRE(make_directories(home.path() + "/.git"));
  REQUIRE(make_directories(home.path() + "/build"));
  write(home.path() + "/.detignore", "build/\n*.log\n");
  auto watch = DirectoryWatch::create(home.path());
  REQUIRE(watch);
  write(home.path() + "/.git/index");
  write(home.path() + "/build/a.o");
  CHECK_FALSE(changed(*watch));
  std::filesystem::rename(home.path() + "/build/a.o", home.path() + "/train.log");
  CHECK_FALSE(changed(*watch));
}

TEST_CASE("a directory watch fails when its directory is removed") {
  TemporaryDirectory home = TemporaryDirectory::create().value();
  REQUIRE(make_directories(home.path() + "/trial"));
  auto watch = DirectoryWatch::create(home.path() + "/trial");
  REQUIRE(watch);
  REQUIRE(remove_tree(home.path() + "/trial"));
  const auto any = watch->changed(0ms);
  REQUIRE_FALSE(any);
  CHECK(any.error().message == home.path() + "/trial was removed");
}

TEST_CASE("det dev takes a configuration, or a directory with const.yaml or one other YAML file") {
  const TemporaryDirectory home = TemporaryDirectory::create().value();
  const std::string directory = home.path();
  CHECK(find_dev_inputs(directory).error().message ==
        directory + " has no configuration; name a YAML file: det dev DIR/CONFIG.yaml");
  write(directory + "/search.yaml");
  CHECK(find_dev_inputs(directory)->config == directory + "/search.yaml");
  write(directory + "/b.yml");
  CHECK(find_dev_inputs(directory).error().message ==
        directory +
            " has several configurations: b.yml, search.yaml; name a YAML file: det dev DIR/CONFIG.yaml");
  write(directory + "/const.yaml");
  CHECK(find_dev_inputs(directory)->config == directory + "/const.yaml");
  const auto named = find_dev_inputs(directory + "/b.yml");
  REQUIRE(named);
  CHECK(named->config == directory + "/b.yml");
  CHECK(named->directory == directory);
  CHECK(find_dev_inputs("b.yml").error().message == "b.yml does not exist");
}

TEST_CASE("det dev keeps its verbs for the HTTP API") {
  const FakeMaster master;
  const auto token = master.det({"dev", "auth-token"});
  CHECK(token.out == "token-of-admin\n");
  const TemporaryDirectory home = TemporaryDirectory::create().value();
  const auto bare = master.det({"dev"}, home.path());
  CHECK(bare.status.code == 2);
  CHECK(bare.err == "det: . has no configuration; name a YAML file: det dev DIR/CONFIG.yaml\n");
}

}  // namespace det::cli::test
