// Runs the five stages of examples/core_api as their README describes.
#include <filesystem>

#include "run.h"

namespace det::testing {
namespace {

/// Least loss of any cubic through these points, from numpy.linalg.lstsq.
constexpr double kBestLoss = 0.003359;

TEST_CASE("stage 1 of the Core API example trains without det") {
  Workplace place;
  const Run run = run_in(place.path(), {kPrograms + "/1_start"});
  REQUIRE(run.code == 0);
  const auto losses = numbers_after(run.out, " loss ");
  REQUIRE(losses.size() == 5);
  CHECK(losses.back() < losses.front() / 2);
}

TEST_CASE("stage 2 reports the metrics that stage 1 prints") {
  Workplace place;
  const Run run = run_in(place.path(), {kPrograms + "/2_metrics"});
  REQUIRE(run.code == 0);
  CHECK(numbers_after(run.out, "training +batch [0-9]+ +loss ").size() == 50);
  CHECK(numbers_after(run.out, "validation_loss ").size() == 5);
}

TEST_CASE("stage 3 saves a checkpoint every 100 batches") {
  Workplace place;
  REQUIRE(run_in(place.path(), {kPrograms + "/3_checkpoints"}).code == 0);
  std::size_t checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(place.path() + "/checkpoints")) {
    checkpoints += std::filesystem::exists(entry.path() / "cubic.txt");
  }
  CHECK(checkpoints == 5);
}

TEST_CASE("stage 4 trains to the end without a cluster") {
  Workplace place;
  const Run run = run_in(place.path(), {kPrograms + "/4_search"});
  REQUIRE(run.code == 0);
  CHECK(numbers_after(run.out, "validation_loss ").size() == 20);
}

TEST_CASE("stage 5 computes the same on two processes as on one") {
  Workplace place;
  place.add_edited("core_api", "5_distributed.yaml", {});
  const Run one = run_in(place.path(), {kPrograms + "/5_distributed"});
  const Run two =
      run_in(place.path(), {DET_LAUNCH, "--nproc-per-node", "2", "--", kPrograms + "/5_distributed"});
  REQUIRE(one.code == 0);
  INFO(two.out << two.err);
  REQUIRE(two.code == 0);
  const auto alone = numbers_after(one.out, "validation_loss "),
             together = numbers_after(two.out, "validation_loss ");
  REQUIRE(alone.size() == 5);
  REQUIRE(together.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(together[i] == Approx(alone[i]).epsilon(1e-5));
  CHECK(alone.back() == Approx(kBestLoss).epsilon(0.01));
}

}  // namespace
}  // namespace det::testing
