// Rendezvous of ranks, exchange of values, and detection of dead ranks.
#include "det/distributed.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/options.h"
#include "ranks.h"

namespace det {
namespace {

using testing::ReservedPort;

RankInfo place(int rank, int size, int local_size, int port) {
  return {.rank = rank,
          .size = size,
          .local_rank = rank % local_size,
          .local_size = local_size,
          .cross_rank = rank / local_size,
          .cross_size = size / local_size,
          .chief_address = "127.0.0.1",
          .chief_port = port};
}

/// Runs `body` as every rank, with a thread per rank. Returns each result, or "error: " and the exception's
/// text.
std::vector<std::string> as_ranks(std::vector<RankInfo> infos,
                                  const std::function<std::string(DistributedContext&)>& body,
                                  int timeout = 30) {
  std::vector<std::string> results(infos.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        DistributedContext context(infos[i], timeout);
        results[i] = body(context);
      } catch (const std::exception& error) {
        results[i] = std::string("error: ") + error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

std::vector<std::string> as_ranks(int size, int local_size,
                                  const std::function<std::string(DistributedContext&)>& body) {
  const ReservedPort port;
  std::vector<RankInfo> infos;
  for (int rank = 0; rank < size; ++rank) infos.push_back(place(rank, size, local_size, port.port()));
  return as_ranks(infos, body);
}

std::string text(const std::vector<Json>& values) { return Json(values).dump(); }

/// Sets environment variables for one scope; "" unsets.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& changes) {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                             "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE",
                             "TORCHELASTIC_RUN_ID", "DET_LAUNCH_TOKEN", "DET_NUM_NODES"}) {
      const char* value = std::getenv(name);
      if (value != nullptr) before_[name] = value;
      ::unsetenv(name);
      if (changes.count(name) > 0) ::setenv(name, changes.at(name).c_str(), 1);
      names_.push_back(name);
    }
  }
  ~Environment() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string> before_;
};

TEST_CASE("exchanged values arrive on all ranks in rank order") {
  const int size = GENERATE(1, 2, 5);
  const auto results = as_ranks(size, size, [](DistributedContext& context) {
    const int rank = context.rank();
    std::string said = text(context.gather({{"rank", rank}}));
    said += text(context.allgather(rank));
    said += context.broadcast(rank == 0 ? Json("chief's") : Json("mine")).dump();
    context.barrier();
    return said;
  });
  Json gathered = Json::array(), all = Json::array();
  for (int rank = 0; rank < size; ++rank) {
    gathered.push_back({{"rank", rank}});
    all.push_back(rank);
  }
  for (int rank = 0; rank < size; ++rank) {
    const std::string expected = (rank == 0 ? gathered.dump() : "[]") + all.dump() + "\"chief's\"";
    CHECK(results[static_cast<std::size_t>(rank)] == expected);
  }
}

TEST_CASE("local exchanges stay on one machine") {
  const auto results = as_ranks(6, 2, [](DistributedContext& context) {
    std::string said = text(context.gather_local(context.rank()));
    said += text(context.allgather_local(context.rank()));
    return said += context.broadcast_local(context.rank() * 10).dump();
  });
  CHECK(results == std::vector<std::string>{"[0,1][0,1]0", "[][0,1]0", "[2,3][2,3]20", "[][2,3]20",
                                            "[4,5][4,5]40", "[][4,5]40"});
}

TEST_CASE("numbers arrive bit for bit, including NaN and infinities") {
  const auto results = as_ranks(2, 2, [](DistributedContext& context) {
    const auto all = context.allgather({0.1, std::nan(""), -std::numeric_limits<double>::infinity()});
    const Json& other = all[context.rank() == 0 ? 1 : 0];
    const bool same = other[0].get<double>() == 0.1 && std::isnan(other[1].get<double>()) &&
                      other[2].get<double>() == -std::numeric_limits<double>::infinity();
    return std::string(same ? "same" : other.dump());
  });
  CHECK(results == std::vector<std::string>{"same", "same"});
}

TEST_CASE("messages larger than socket buffers pass in both directions") {
  const std::size_t bytes = 20 << 20;
  const auto results = as_ranks(3, 3, [&](DistributedContext& context) {
    const std::string mine(bytes, static_cast<char>('a' + context.rank()));
    const auto all = context.allgather_bytes(mine);
    const std::string chiefs = context.broadcast_bytes(mine);
    const bool right = all.size() == 3 && all[2] == std::string(bytes, 'c') && all[1].size() == bytes &&
                       chiefs == std::string(bytes, 'a');
    return std::string(right ? "right" : "wrong");
  });
  CHECK(results == std::vector<std::string>{"right", "right", "right"});
}

TEST_CASE("a rank in a different call ends all ranks, naming both calls") {
  const auto results = as_ranks(2, 2, [](DistributedContext& context) -> std::string {
    if (context.rank() == 1) (void)context.gather(1);
    context.barrier();
    return "came through";
  });
  CHECK_THAT(results[0],
             Catch::Contains("rank 1 made gather as its call 1 while rank 0 made barrier as its call 1"));
  CHECK_THAT(results[1], Catch::StartsWith("error: rank 0 (on host ") && Catch::EndsWith("has left"));
}

TEST_CASE("a rank that leaves after the last exchange does not disturb the others") {
  for (int round = 0; round < 20; ++round) {
    const auto results = as_ranks(3, 3, [](DistributedContext& context) {
      context.barrier();
      return text(context.allgather(1));
    });
    REQUIRE(results == std::vector<std::string>{"[1,1,1]", "[1,1,1]", "[1,1,1]"});
  }
}

TEST_CASE("every other rank names a dead rank at once") {
  const char* mode = GENERATE("killed", "exits");
  const int victim = GENERATE(0, 2);
  const auto ends = testing::run_ranks(4, {DISTRIBUTED_RANK, mode, std::to_string(victim)});
  for (int rank = 0; rank < 4; ++rank) {
    const auto& end = ends[static_cast<std::size_t>(rank)];
    if (rank == victim) continue;
    CHECK(end.status.code == 1);
    CHECK_THAT(end.out, Catch::StartsWith("error: rank " + std::to_string(victim) + " (on host ") &&
                            Catch::EndsWith(") is gone\n"));
    CHECK(end.took < std::chrono::seconds(20));
  }
}

TEST_CASE("processes exchange values like threads") {
  for (const auto& end : testing::run_ranks(3, {DISTRIBUTED_RANK, "exchange"})) {
    CHECK(end.status.ok());
    CHECK(end.out == "[0,10,20]\n");
  }
}

TEST_CASE("missing ranks are named") {
  const ReservedPort port;
  const auto results = as_ranks(
      {place(0, 4, 4, port.port()), place(2, 4, 4, port.port())}, [](auto&) { return "joined"; }, 1);
  const std::string expected =
      "ranks 1, 3 of 4 did not connect to rank 0 at 127.0.0.1:" + std::to_string(port.port());
  CHECK_THAT(results[0], Catch::Contains(expected));
  CHECK_THAT(results[1], Catch::Contains(expected));
}

TEST_CASE("a rank without a chief reports the address it tried") {
  const ReservedPort port;
  const auto results = as_ranks(
      {place(1, 2, 2, port.port())}, [](auto&) { return "joined"; }, 0);
  CHECK_THAT(results[0],
             Catch::Contains("rank 1 cannot connect to rank 0 at 127.0.0.1:" + std::to_string(port.port())));
}

TEST_CASE("a second process with the same rank is refused and the first stays") {
  [[maybe_unused]] const int round = GENERATE(range(0, 60));  // the rivals' connections arrive in any order
  const ReservedPort port;
  std::vector<std::string> results(3);
  std::vector<std::thread> threads;
  // Rank 2 joins only after one of the two rivals has been refused.
  std::atomic<bool> refused = false;
  const auto join = [&](std::size_t slot, int rank) {
    try {
      if (rank == 2) refused.wait(false);
      DistributedContext context(place(rank, 3, 3, port.port()), 30);
      results[slot] += text(context.allgather(rank)) + " ";
    } catch (const std::exception& error) {
      results[slot] += error.what();
      refused = true;
      refused.notify_all();
    }
  };
  std::string other;
  threads.emplace_back([&] { join(0, 0); });
  threads.emplace_back([&] { join(1, 1); });
  threads.emplace_back([&] { join(2, 1); });
  threads.emplace_back([&] {
    try {
      refused.wait(false);
      DistributedContext context(place(2, 3, 3, port.port()), 3);
      other = text(context.allgather(2));
    } catch (const std::exception& error) {
      other = error.what();
    }
  });
  for (std::thread& thread : threads) thread.join();
  CHECK(results[0] == "[0,1,2] ");
  CHECK(other == "[0,1,2]");
  const bool first_stays = results[1] == "[0,1,2] ";
  CHECK(results[first_stays ? 1 : 2] == "[0,1,2] ");
  CHECK_THAT(results[first_stays ? 2 : 1],
             Catch::Contains("another process (on host ") && Catch::EndsWith("has come with RANK=1"));
}

TEST_CASE("foreign connections neither join nor delay the trial's ranks") {
  const ReservedPort port;
  RankInfo larger = place(3, 4, 4, port.port());
  std::string refusal;
  std::thread stranger;
  const auto results = as_ranks({place(0, 2, 2, port.port()), place(1, 2, 2, port.port())},
                                [&](auto& context) { return text(context.allgather(context.rank())); });
  CHECK(results == std::vector<std::string>{"[0,1]", "[0,1]"});

  std::vector<std::thread> threads;
  std::string chief;
  threads.emplace_back([&] {
    DistributedContext context(place(0, 2, 2, port.port()), 30);
    chief = text(context.allgather(0));
  });
  threads.emplace_back([&] {
    // A silent connection, one with another protocol, and one of another trial, before the proper rank joins.
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::vector<UniqueFd> idle;
    for (const char* words : {"", "GET / HTTP/1.1\r\n\r\n"}) {
      UniqueFd fd;
      for (;;) {
        fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) break;
      }
      (void)!::write(fd.get(), words, std::strlen(words));
      idle.push_back(std::move(fd));
    }
    try {
      DistributedContext context(larger, 30);
    } catch (const std::exception& error) {
      refusal = error.what();
    }
    DistributedContext context(place(1, 2, 2, port.port()), 30);
    (void)context.allgather(1);
  });
  for (std::thread& thread : threads) thread.join();
  CHECK(chief == "[0,1]");
  CHECK(refusal == "rank 3 could not join: rank 0 was started with WORLD_SIZE=2, this process with 4");
}

TEST_CASE("a process of another launch is refused") {
  const ReservedPort port;
  const auto environment = [&](int rank, const char* token) {
    const std::string number = std::to_string(rank);
    return environment_with({"RANK=" + number, "LOCAL_RANK=" + number, "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2",
                             "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port.port()),
                             std::string("DET_LAUNCH_TOKEN=") + token});
  };
  const auto start = [&](int rank, const char* token) {
    return Child::spawn({.argv = {DISTRIBUTED_RANK, "exchange"},
                         .env = environment(rank, token),
                         .cwd = "",
                         .out = Stream::pipe()})
        .value();
  };
  Child chief = start(0, "one");
  const auto other =
      run_process({.argv = {DISTRIBUTED_RANK, "exchange"}, .env = environment(1, "two")}).value();
  CHECK_THAT(other.out, Catch::Contains("it is of another launch"));
  CHECK(run_process({.argv = {DISTRIBUTED_RANK, "exchange"}, .env = environment(1, "one")}).value().out ==
        "[0,10]\n");
  CHECK(chief.wait(std::chrono::seconds(20)).value().ok());
}

TEST_CASE("the environment gives a process its rank and world size") {
  const Environment environment({{"RANK", "5"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "1"},
                                 {"LOCAL_WORLD_SIZE", "4"},
                                 {"GROUP_RANK", "1"},
                                 {"MASTER_ADDR", "node0"},
                                 {"MASTER_PORT", "29400"}});
  const RankInfo info = rank_info_from_environment();
  CHECK(info.rank == 5);
  CHECK(info.size == 8);
  CHECK(info.local_rank == 1);
  CHECK(info.local_size == 4);
  CHECK(info.cross_rank == 1);
  CHECK(info.cross_size == 2);
  CHECK(info.chief_address == "node0");
  CHECK(info.chief_port == 29400);
}

TEST_CASE("the next port is used where torchrun listens on the given one") {
  const Environment environment({{"RANK", "0"},
                                 {"WORLD_SIZE", "2"},
                                 {"LOCAL_RANK", "0"},
                                 {"LOCAL_WORLD_SIZE", "2"},
                                 {"MASTER_ADDR", "node0"},
                                 {"MASTER_PORT", "29400"},
                                 {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  CHECK(rank_info_from_environment().chief_port == 29401);
}

TEST_CASE("an unset WORLD_SIZE and a WORLD_SIZE of 1 mean one process") {
  {
    const Environment environment(std::map<std::string, std::string>{{"RANK", "7"}});
    CHECK(rank_info_from_environment().size == 1);
  }
  const Environment environment({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  const RankInfo info = rank_info_from_environment();
  CHECK(info.size == 1);
  DistributedContext context(info);
  CHECK(text(context.allgather(3)) == "[3]");
  CHECK(context.is_chief());
}

TEST_CASE("a program without a launcher is refused when slots span several agents") {
  const Environment environment(std::map<std::string, std::string>{{"DET_NUM_NODES", "2"}});
  CHECK_THROWS_WITH(rank_info_from_environment(), Catch::Contains("slots are on 2 agents") &&
                                                      Catch::Contains("det-launch") &&
                                                      Catch::Contains("resources.is_single_node: true"));
  const Environment alone(std::map<std::string, std::string>{{"DET_NUM_NODES", "1"}});
  CHECK(rank_info_from_environment().size == 1);
}

TEST_CASE("all problems of the environment are in one message") {
  const Environment environment(
      {{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "x"}, {"LOCAL_WORLD_SIZE", "3"}});
  try {
    (void)rank_info_from_environment();
    FAIL("accepted");
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    for (const char* part : {"RANK=4 is not a number from 0 to 3", "LOCAL_RANK=x is not a number from 0 to 2",
                             "WORLD_SIZE=4 is not a multiple of LOCAL_WORLD_SIZE=3", "MASTER_ADDR is not set",
                             "MASTER_PORT is not set", "start it with det-launch"}) {
      CHECK_THAT(message, Catch::Contains(part));
    }
  }
}

}  // namespace
}  // namespace det
