// Runs the fuzz targets over their corpus as plain tests, whole and with every seed cut and bent a little.
#include <catch2/catch.hpp>
#include <filesystem>

#include "archive_seeds.h"
#include "base/files.h"
#include "base/random.h"
#include "targets.h"

namespace {

using Target = void (*)(std::string_view);

/// The seed itself, cut short, and with some bytes changed: a crash ends the program, so it cannot be missed.
int run_around(Target target, const std::string& seed, int changes) {
  target(seed);
  det::Random random{seed.size(), 0};
  for (int i = 0; i < changes; ++i) {
    std::string bent = seed;
    if (!bent.empty() && i % 3 == 0) bent.resize(random.below(bent.size()));
    for (std::uint64_t n = 1 + random.below(4); n > 0 && !bent.empty(); --n) {
      bent[random.below(bent.size())] = static_cast<char>(random.next());
    }
    target(bent);
  }
  return changes + 1;
}

}  // namespace

TEST_CASE("the YAML corpus runs clean", "[fuzz]") {
  int runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DET_SOURCE_DIR "/tests/fuzz/corpus/yaml")) {
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
