// Runs the fuzz targets over their corpus as plain tests, with each seed unchanged and mutated.
#include <catch2/catch.hpp>
#include <filesystem>

#include "archive_seeds.h"
#include "around.h"
#include "common/base/files.h"
#include "targets.h"
#include "test_paths.h"

using det::fuzz::run_around;

TEST_CASE("the YAML corpus runs clean", "[fuzz]") {
  int runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(det::source_path("/tests/fuzz/corpus/yaml"))) {
    INFO(entry.path().string());
    const auto text = det::read_file(entry.path().string());
    REQUIRE(text);
    runs += run_around(det::fuzz::yaml, *text, 200);
  }
  CHECK(runs >= 20 * 201);
}

TEST_CASE("the archive corpus runs clean", "[fuzz]") {
  int runs = 0;
  for (const auto& [name, bytes] : det::fuzz::archive_seeds()) {
    INFO(name);
    runs += run_around(det::fuzz::archive, bytes, 300);
  }
  CHECK(runs >= 15 * 301);
}
