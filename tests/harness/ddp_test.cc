// Collectives and gradient averaging over every transport: correct, and bit-identical on all ranks.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

#include "common/base/text.h"
#include "ranks.h"

namespace det {
namespace {

/// The transports of this build. NCCL is a stand-in.
std::vector<const char*> backends() {
  std::vector<const char*> all{"shm", "nccl"};
#ifdef DET_HAS_GLOO
  all.push_back("gloo");
#endif
  return all;
}

TEST_CASE("collectives and gradients are correct and equal on all ranks") {
  const char* backend = GENERATE(from_range(backends()));
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
  const char* backend = GENERATE(from_range(backends()));
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

#ifdef DET_HAS_GLOO
TEST_CASE("a broken connection of Gloo is an error, not the signal that ends a process") {
  for (const auto& end : testing::run_ranks(2, {DDP_RANK, "gloo", "pipe"})) CHECK(end.status.ok());
}
#endif

/// Sets the answers of the stand-in of NCCL for the ranks that are started while it exists.
class NcclScript {
 public:
  explicit NcclScript(const char* text) { ::setenv("DET_FAKE_NCCL", text, 1); }
  ~NcclScript() { ::unsetenv("DET_FAKE_NCCL"); }
};

TEST_CASE("a call that NCCL refuses ends the rank with its message") {
  const NcclScript script("fail all_reduce 3");
  for (const auto& end : testing::run_ranks(2, {DDP_RANK, "nccl", "count"})) {
    CHECK(end.status.code == 1);
    CHECK_THAT(end.out, Catch::StartsWith("ok sum 0 ") && Catch::EndsWith("\nerror: nccl: internal error\n"));
    CHECK(split(end.out, '\n').size() == 4);
  }
}

TEST_CASE("ranks that NCCL cannot connect end with its message") {
  const NcclScript script("fail init 1");
  for (const auto& end : testing::run_ranks(2, {DDP_RANK, "nccl", "count"})) {
    CHECK(end.status.code == 1);
    CHECK(end.out == "error: nccl: unhandled system error\n");
  }
}

TEST_CASE("a connection that NCCL loses during a collective ends the ranks") {
  const NcclScript script("lost all_reduce 3");
  for (const auto& end : testing::run_ranks(2, {DDP_RANK, "nccl", "count"})) {
    CHECK(end.status.code == 1);
    CHECK_THAT(end.out,
               Catch::EndsWith("\nerror: nccl: remote process exited or there was a network error\n"));
    CHECK(split(end.out, '\n').size() == 4);
  }
}

TEST_CASE("a rank that hangs in a collective of NCCL and is killed ends the others") {
  const NcclScript script("hang all_reduce 3 1");
  const auto ends = testing::run_ranks(3, {DDP_RANK, "nccl", "killed", "1"});
  for (const int rank : {0, 2}) {
    const auto& end = ends[static_cast<std::size_t>(rank)];
    CAPTURE(rank, end.out);
    CHECK(end.status.code == 1);
    CHECK_THAT(end.out, Catch::Contains("\nerror: nccl: rank 1 (on host ") && Catch::EndsWith(") is gone\n"));
    CHECK(split(end.out, '\n').size() == 4);
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
