// Runs `det init`.
#include <catch2/catch.hpp>

#include "fake_master.h"

namespace det::cli::test {

TEST_CASE("init writes a template into a new directory and prints the next command") {
  const FakeMaster master;
  const TemporaryDirectory home = TemporaryDirectory::create().value();
  for (const std::string name : {"classification", "language", "core-api"}) {
    const auto done = master.det({"init", name, "--template", name}, home.path());
    INFO(done.err);
    CHECK(done.status.code == 0);
    CHECK(done.out.find("Created " + name + "/const.yaml\n") != std::string::npos);
    CHECK(done.out.ends_with("Run: cd " + name + " && det experiment create const.yaml . -f\n"));
    for (const char* file : {"README.md", ".detignore", "const.yaml"})
      CHECK(path_exists(home.path() + "/" + name + "/" + file));
  }
  CHECK(path_exists(home.path() + "/language/model_def.cpp"));
  CHECK(path_exists(home.path() + "/core-api/startup-hook.sh"));
}

TEST_CASE("init keeps existing files and writes nothing beside them") {
  const FakeMaster master;
  const TemporaryDirectory home = TemporaryDirectory::create().value();
  REQUIRE(write_file_atomic(home.path() + "/model_def.cpp", "mine"));
  const auto done = master.det({"init"}, home.path());
  CHECK(done.status.code == 2);
  CHECK(done.err == "det: ./model_def.cpp exists; give another directory\n");
  CHECK(read_file(home.path() + "/model_def.cpp").value() == "mine");
  CHECK_FALSE(path_exists(home.path() + "/const.yaml"));
}

TEST_CASE("init names the templates when the given one does not exist") {
  const FakeMaster master;
  const TemporaryDirectory home = TemporaryDirectory::create().value();
  const auto done = master.det({"init", "x", "--template", "languages"}, home.path());
  CHECK(done.status.code == 2);
  CHECK(done.err ==
        "det: --template: must be classification, core-api, language, got \"languages\"; did you mean "
        "\"language\"?\n");
  CHECK_FALSE(path_exists(home.path() + "/x"));
}

}  // namespace det::cli::test
