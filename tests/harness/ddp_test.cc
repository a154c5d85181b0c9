// Collectives and gradient averaging over every transport: correct, and bit-identical on all ranks.
#include <catch2/catch.hpp>
#include <set>

#include "common/base/text.h"
#include "ranks.h"

namespace det {
namespace {

TEST_CASE("collectives and gradients are correct and equal on all ranks") {
  const char* backend = GENERATE("shm", "gloo");
  const int size = GENERATE(2, 3, 4);
  CAPTURE(backend, size);
  const auto ends = testing::run_ranks(size, {DDP_RANK, backend});
  const auto first = split(ends[0].out, '\n');
  CHECK(first.size() > 60);
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    CAPTURE(rank);
    CHECK(ends[rank].status.ok());
    const auto lines = split(ends[rank].out, '\n');
    REQUIRE(lines.size() == first.size());
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
      CHECK_THAT(lines[i], Catch::StartsWith("ok "));
      CHECK(lines[i] == first[i]);
    }
  }
}

TEST_CASE("overlap and bucket size change no bit of sums over shared memory") {
  const auto ends = testing::run_ranks(2, {DDP_RANK, "shm"});
  std::set<std::string> means;
  for (const std::string& line : split(ends[0].out, '\n')) {
    if (line.rfind("ok mean 0 ", 0) == 0) means.insert(line);
  }
  CHECK(means.size() == 1);
}

TEST_CASE("a killed rank ends the others with an error that names it") {
  const char* backend = GENERATE("shm", "gloo");
  const int victim = GENERATE(0, 2);
  CAPTURE(backend, victim);
  const auto ends = testing::run_ranks(4, {DDP_RANK, backend, "die", std::to_string(victim)});
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == victim) continue;
    const auto& end = ends[static_cast<std::size_t>(rank)];
    CHECK(end.status.code == 1);
    CHECK_THAT(end.out, Catch::StartsWith(std::string("error: ") + backend + ": rank " +
                                          std::to_string(victim) + " (on host ") &&
                            Catch::EndsWith(") is gone\n"));
  }
}

TEST_CASE("shared memory detects ranks in different collectives") {
  for (const auto& end : testing::run_ranks(2, {DDP_RANK, "shm", "mismatch"})) {
    CHECK(end.status.ok());
    CHECK_THAT(end.out, Catch::StartsWith("ok mismatch"));
  }
}

}  // namespace
}  // namespace det
