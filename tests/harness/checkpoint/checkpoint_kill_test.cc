// Kills a writer at random moments: only complete checkpoints become visible.
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "checkpoint_fixture.h"
#include "common/base/process.h"
#include "common/base/random.h"
#include "harness/src/checkpoint/checkpoint_dir.h"

namespace det {
namespace {

namespace fs = std::filesystem;

// The killed program: saves in an endless loop. The test below runs it as a child process.
TEST_CASE("saves until it is killed", "[.][killed]") {
  const char* storage = std::getenv("DET_TEST_STORAGE");
  REQUIRE(storage != nullptr);
  testing::Fixture fixture(1, storage);
  fixture.wrapped.models.push_back(torch::nn::Linear(1024, 2048).ptr());
  fixture.add_all();
  if (std::getenv("DET_TEST_CALLBACKS") == nullptr) fixture.wrapped.callbacks.clear();
  CheckpointSaver saver(fixture.run, fixture.wrapped);
  for (std::int64_t batch = 1;; ++batch) {
    fixture.train(1);
    saver.save(testing::at_batch(batch));
    (void)saver.finished();
  }
}

TEST_CASE("a kill never leaves a visible torn checkpoint") {
  auto directory = TemporaryDirectory::create().value();
  const std::string storage = directory.path() + "/checkpoints";
  Random random{11};
  std::size_t seen = 0;
  for (int round = 0; round < 8; ++round) {
    std::vector<std::string> changes{"DET_TEST_STORAGE=" + storage};
    if (round % 2 == 1) changes.push_back("DET_TEST_CALLBACKS=1");
    ProcessOptions options{.argv = {program_path(), "saves until it is killed"}};
    options.env = environment_with(changes);
    Child child = Child::spawn(options).value();
    // The kill comes at a random moment within 0.1 s after the first save.
    const auto before = seen;
    for (int waited = 0; waited < 600 && seen == before; ++waited) {
      CHECK_FALSE(child.wait(std::chrono::milliseconds(50)).has_value());
      seen =
          path_exists(storage) ? std::distance(fs::directory_iterator(storage), fs::directory_iterator()) : 0;
    }
    (void)child.wait(std::chrono::microseconds(random.below(100'000)));
    (void)child.signal(SIGKILL);
    REQUIRE(child.wait(std::chrono::seconds(60)).has_value());

    int partial = 0;
    seen = 0;
    for (const auto& entry : fs::directory_iterator(storage)) {
      const std::string path = entry.path().string();
      if (path.ends_with(".partial")) {
        ++partial;
        continue;
      }
      ++seen;
      const Status good = verify_checkpoint(path);
      INFO((good ? "" : good.error().message));
      CHECK(good.has_value());
    }
    CHECK(partial <= 1);
    remove_dead_partials(storage, std::numeric_limits<std::int64_t>::max() / 2);
    CHECK(static_cast<std::size_t>(
              std::distance(fs::directory_iterator(storage), fs::directory_iterator())) == seen);
    testing::Fixture fixture(2, storage);
    fixture.wrapped.models.push_back(torch::nn::Linear(1024, 2048).ptr());
    fixture.add_all();
    if (seen > 0)
      (void)load_checkpoint(fixture.run, fixture.wrapped, find_latest_checkpoint(storage).value());
  }
  CHECK(seen > 0);
}

}  // namespace
}  // namespace det
