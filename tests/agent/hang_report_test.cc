#include "agent/task/hang_report.h"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>

using namespace det;
using namespace det::agent;
using namespace det::collective;

namespace {

constexpr MonoTime kNow{100'000'000};

Record call(std::uint64_t number, Operation operation, std::uint64_t bytes, State state = State::kDone,
            Channel channel = Channel::kTensors) {
  Record record{};
  record.number = number;
  record.bytes = bytes;
  record.started = kNow.micros - 5'000'000;
  record.channel = channel;
  record.operation = operation;
  record.state = state;
  return record;
}

/// A rank that has made `done` all-reduces and then, if given, is in `running`.
RankRecord rank_of(int rank, std::uint64_t done, std::optional<Record> running = {}, int ranks = 3) {
  RankRecord record;
  record.rank = rank, record.ranks = ranks;
  for (std::uint64_t i = 1; i <= done; ++i) record.calls.push_back(call(i, Operation::kAllReduce, 400));
  if (running) record.calls.push_back(*running);
  return record;
}

template <typename... Ranks>
HangDiagnosis diagnosis(Ranks... ranks) {
  std::vector<RankRecord> all;
  (all.push_back(std::move(ranks)), ...);
  return diagnose(all, kNow);
}

/// A memory as the training library makes it, in this process.
struct OwnMemory {
  OwnMemory() : fd(::memfd_create(kMemoryName, MFD_CLOEXEC)) {
    content->magic = kMagic, content->version = kVersion, content->capacity = kCapacity;
    content->rank = 1, content->ranks = 3;
  }
  std::vector<RankRecord> read() {
    (void)!::pwrite(fd.get(), content.get(), sizeof *content, 0);
    return read_ranks({::getpid()});
  }
  UniqueFd fd;
  std::unique_ptr<Memory> content = std::make_unique<Memory>();
};

}  // namespace

TEST_CASE("the rank outside of a collective in which others wait is the stuck one", "[hang_report]") {
  const Record tenth = call(10, Operation::kAllReduce, 400, State::kRunning);
  const HangDiagnosis found = diagnosis(rank_of(0, 9, tenth), rank_of(1, 9), rank_of(2, 9, tenth));
  CHECK(found.text ==
        "rank 1 is stuck outside of all_reduce 10 (400.0B); the last call of rank 1 was all_reduce 9 "
        "(400.0B); ranks 0, "
        "2 wait in all_reduce 10 (400.0B) since 5s");
  CHECK(found.stuck == std::vector<std::size_t>{1});
}

TEST_CASE("the rank in another collective than most ranks is the stuck one", "[hang_report]") {
  const Record tenth = call(10, Operation::kAllReduce, 400, State::kRunning);
  const Record barrier = call(3, Operation::kBarrier, 0, State::kRunning, Channel::kValues);
  const HangDiagnosis found = diagnosis(rank_of(0, 9, tenth), rank_of(1, 9, barrier), rank_of(2, 9, tenth));
  CHECK(found.text == "rank 1 is stuck in barrier 3; ranks 0, 2 wait in all_reduce 10 (400.0B) since 5s");
  CHECK(found.stuck == std::vector<std::size_t>{1});
}

TEST_CASE("the first call that differs between ranks is named", "[hang_report]") {
  RankRecord other = rank_of(1, 4);
  other.calls.push_back(call(5, Operation::kBroadcast, 8));
  other.calls.push_back(call(6, Operation::kBroadcast, 8, State::kRunning));
  const Record seventh = call(7, Operation::kAllReduce, 400, State::kRunning);
  const HangDiagnosis found = diagnosis(rank_of(0, 6, seventh), std::move(other), rank_of(2, 6, seventh));
  CHECK_THAT(found.text, Catch::EndsWith("; the calls differ since number 5: rank 1 made broadcast 5 (8.0B), "
                                         "rank 0 all_reduce 5 (400.0B)"));
}

TEST_CASE("ranks of other machines, stuck connections and single processes are told apart", "[hang_report]") {
  const Record second = call(2, Operation::kAllReduce, 400, State::kRunning);
  CHECK(diagnosis(rank_of(0, 1, second), rank_of(1, 1, second)).text ==
        "ranks 0, 1 wait in all_reduce 2 (400.0B) since 5s, for ranks on other machines");
  const HangDiagnosis all = diagnosis(rank_of(0, 1, second, 2), rank_of(1, 1, second, 2));
  CHECK(all.text ==
        "all ranks are in all_reduce 2 (400.0B) since 5s: the connections between them are stuck");
  CHECK(all.stuck.size() == 2);
  CHECK(diagnosis(rank_of(0, 3, {}, 2), rank_of(1, 3, {}, 2)).text ==
        "ranks 0, 1 are in no collective call; the last call of rank 0 was all_reduce 3 (400.0B)");
  const HangDiagnosis single = diagnosis(rank_of(0, 0, {}, 1));
  CHECK(single.text.empty());
  CHECK(single.stuck == std::vector<std::size_t>{0});
  CHECK(diagnose({}, kNow).stuck.empty());
}

TEST_CASE("the memory of a process is found by its name, and its calls are read in order", "[hang_report]") {
  OwnMemory own;
  own.content->calls = kCapacity + 2;
  for (std::uint64_t i = 2; i < kCapacity + 2; ++i)
    own.content->records[i % kCapacity] = call(i + 1, Operation::kAllReduce, 4);
  own.content->records[1].state = State::kRunning;
  const std::vector<RankRecord> ranks = own.read();
  REQUIRE(ranks.size() == 1);
  CHECK(ranks[0].rank == 1);
  CHECK(ranks[0].ranks == 3);
  REQUIRE(ranks[0].calls.size() == kCapacity);
  CHECK(ranks[0].calls.front().number == 3);
  CHECK(ranks[0].calls.back().number == kCapacity + 2);
  CHECK(ranks[0].calls.back().state == State::kRunning);
}

TEST_CASE("a memory with other contents is not read", "[hang_report]") {
  OwnMemory own;
  REQUIRE(own.read().size() == 1);
  SECTION("another version") { own.content->version = kVersion + 1; }
  SECTION("another capacity") { own.content->capacity = 1; }
  SECTION("a rank that cannot be") { own.content->rank = 3; }
  SECTION("no magic") { own.content->magic = 0; }
  CHECK(own.read().empty());
}

TEST_CASE("a damaged call is left out", "[hang_report]") {
  OwnMemory own;
  own.content->calls = 3;
  own.content->records[0] = call(1, static_cast<Operation>(200), 4);
  own.content->records[1] = call(2, Operation::kAllReduce, 4, static_cast<State>(9));
  own.content->records[2] = call(3, Operation::kAllReduce, 4);
  const std::vector<RankRecord> ranks = own.read();
  REQUIRE(ranks.size() == 1);
  REQUIRE(ranks[0].calls.size() == 1);
  CHECK(ranks[0].calls[0].number == 3);
}
