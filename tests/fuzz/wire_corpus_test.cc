// Runs the network fuzz targets over their corpus as plain tests, with each seed unchanged and mutated.
#include <catch2/catch.hpp>
#include <filesystem>

#include "around.h"
#include "common/base/files.h"
#include "test_paths.h"
#include "wire_targets.h"

TEST_CASE("the corpus of HTTP requests runs clean", "[fuzz]") {
  int runs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(det::source_path("/tests/fuzz/corpus/gateway"))) {
    INFO(entry.path().string());
    const auto text = det::read_file(entry.path().string());
    REQUIRE(text);
    runs += det::fuzz::run_around(det::fuzz::gateway, *text, 200);
  }
  CHECK(runs >= 15 * 201);
}

TEST_CASE("the corpus of messages of agents and trials runs clean", "[fuzz]") {
  int runs = 0;
  for (const auto& [name, bytes] : det::fuzz::wire_seeds()) {
    INFO(name);
    runs += det::fuzz::run_around(det::fuzz::wire, bytes, 300);
  }
  CHECK(runs >= 8 * 301);
}
