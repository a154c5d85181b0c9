// det-launch starts ranks with torchrun's variables and stops all when one fails.
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <set>

#include "common/base/process.h"
#include "common/base/text.h"
#include "common/base/wait.h"

namespace det {
namespace {

ProcessResult launch(std::vector<std::string> arguments, const std::vector<std::string>& changes = {}) {
  arguments.insert(arguments.begin(), DET_LAUNCH);
  return run_process({.argv = arguments, .env = environment_with(changes)}).value();
}

TEST_CASE("each rank gets its variables and its prefix") {
  const auto result =
      launch({"--nproc-per-node", "2", "--", "sh", "-c",
              "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR ${MASTER_PORT:+port}"});
  CHECK(result.status.code == 0);
  CHECK_THAT(result.out, Catch::Contains("[rank=0] 0 0 2 2 127.0.0.1 port\n"));
  CHECK_THAT(result.out, Catch::Contains("[rank=1] 1 1 2 2 127.0.0.1 port\n"));
}

TEST_CASE("a rank is started for each slot") {
  CHECK(split(launch({"sh", "-c", "echo x"}, {"DET_SLOT_IDS=[0, 1, 12]"}).out, '\n').size() == 4);
}

TEST_CASE("a dead rank ends all ranks with its exit code") {
  const auto result = launch({"--nproc-per-node=2", "sh", "-c", "[ $RANK = 1 ] && exit 7; exec sleep 60"});
  CHECK(result.status.code == 7);
}

TEST_CASE("the reason of a failure is printed on its own line") {
  CHECK_THAT(launch({"--nproc-per-node=2", "sh", "-c", "[ $RANK = 1 ] && exit 7; exec sleep 60"}).err,
             Catch::StartsWith("det-launch: rank 1 ended with exit code 7; the others are stopped\n"));
  CHECK(launch({"sh", "-c", "kill -9 $$"}).err == "det-launch: rank 0 ended with signal 9 (Killed)\n");
}

TEST_CASE("ranks are numbered across machines") {
  const auto result =
      launch({"--nnodes=3", "--node_rank", "2", "--nproc_per_node", "2", "--master-addr", "node0", "sh", "-c",
              "echo $RANK $LOCAL_RANK $WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE $MASTER_ADDR:$MASTER_PORT"},
             {"MASTER_PORT", "C10D_PORT"});
  CHECK_THAT(result.out, Catch::Contains("[rank=4] 4 0 6 2 3 node0:29400\n"));
  CHECK_THAT(result.out, Catch::Contains("[rank=5] 5 1 6 2 3 node0:29400\n"));
  CHECK(launch({"--nnodes=2", "sh", "-c", "echo $MASTER_ADDR:$MASTER_PORT"},
               {"MASTER_ADDR", "MASTER_PORT", "DET_CHIEF_IP=10.0.0.5", "C10D_PORT=29411"})
            .out == "[rank=0] 10.0.0.5:29411\n");
}

TEST_CASE("a gang is laid out by the agent's variables unless flags override them") {
  const std::vector<std::string> gang{"DET_NUM_NODES=2",  "DET_NODE_RANK=1",    "DET_FIRST_RANK=3",
                                      "DET_WORLD_SIZE=5", "DET_SLOT_IDS=[0,4]", "DET_CHIEF_IP=10.0.0.1",
                                      "C10D_PORT=29401",  "MASTER_ADDR",        "MASTER_PORT"};
  const std::string print =
      "echo $RANK $WORLD_SIZE $LOCAL_RANK $GROUP_RANK $GROUP_WORLD_SIZE $MASTER_ADDR:$MASTER_PORT";
  const std::string out = launch({"sh", "-c", print}, gang).out;
  CHECK_THAT(out, Catch::Contains("[rank=3] 3 5 0 1 2 10.0.0.1:29401\n"));
  CHECK_THAT(out, Catch::Contains("[rank=4] 4 5 1 1 2 10.0.0.1:29401\n"));
  CHECK_THAT(launch({"--nproc-per-node=1", "sh", "-c", "echo $RANK of $WORLD_SIZE"}, gang).out,
             Catch::Contains("[rank=0] 0 of 1\n"));
  CHECK_THAT(launch({"true"}, {"DET_NUM_NODES=x"}).err, Catch::Contains("DET_NUM_NODES is not a number"));
}

TEST_CASE("ranks share the cores unless OMP_NUM_THREADS is set") {
  const std::vector<std::string> print{"--nproc-per-node", "64", "sh", "-c", "echo $OMP_NUM_THREADS"};
  CHECK_THAT(launch(print, {"OMP_NUM_THREADS"}).out, Catch::Contains("[rank=63] 1\n"));
  CHECK_THAT(launch(print, {"OMP_NUM_THREADS=3"}).out, Catch::Contains("[rank=63] 3\n"));
}

TEST_CASE("a number of threads that nobody chose is marked as a default") {
  const std::vector<std::string> print{"--nproc-per-node", "64", "sh", "-c",
                                       "echo $OMP_NUM_THREADS,$DET_DEFAULT_THREADS"};
  CHECK_THAT(launch(print, {"OMP_NUM_THREADS", "DET_DEFAULT_THREADS"}).out,
             Catch::Contains("[rank=63] 1,1\n"));
  CHECK_THAT(launch(print, {"OMP_NUM_THREADS=3", "DET_DEFAULT_THREADS"}).out,
             Catch::Contains("[rank=63] 3,\n"));
  CHECK_THAT(launch(print, {"OMP_NUM_THREADS=4", "DET_DEFAULT_THREADS=4"}).out,  // the agent's
             Catch::Contains("[rank=63] 4,4\n"));
}

TEST_CASE("ranks of one launch share a secret that differs between launches") {
  const std::vector<std::string> print{"--nproc-per-node=2", "sh", "-c", "echo $DET_LAUNCH_TOKEN"};
  std::set<std::string> tokens;
  for (int i = 0; i < 2; ++i) {
    for (const std::string& line : split(launch(print, {"DET_LAUNCH_TOKEN"}).out, '\n')) {
      if (!line.empty()) tokens.insert(line.substr(line.find(' ')));
    }
  }
  CHECK(tokens.size() == 2);
  CHECK(launch({"sh", "-c", "echo $DET_LAUNCH_TOKEN"}, {"DET_LAUNCH_TOKEN=mine"}).out == "[rank=0] mine\n");
}

TEST_CASE("invalid arguments are refused with a remedy") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "no PROGRAM to start; see det-launch --help"},
      {{"--nproc-per-nod", "2", "sh"}, "det-launch has no --nproc-per-nod; did you mean \"nproc-per-node\"?"},
      {{"--nproc-per-node", "0", "sh"}, "--nproc-per-node 0 is not a number from 1 to 4096"},
      {{"--nnodes", "1:4", "sh"}, "--nnodes 1:4: the number of machines is fixed; give one number"},
      {{"--nnodes", "2", "sh"}, "--nnodes 2 needs --master-addr, the name of machine 0"},
      {{"--node-rank", "1", "sh"}, "--node-rank 1 needs --nnodes 2 or more; machines are numbered from 0"},
      {{"--rdzv-endpoint=h:1", "sh"},
       "det-launch has no --rdzv-endpoint: use --master-addr and --master-port"},
      {{"--master-port"}, "--master-port needs a value"},
      {{"-x", "sh"}, "det-launch has no -x; see det-launch --help"},
  };
  for (const auto& [arguments, expected] : cases) {
    const auto result = launch(arguments, {"MASTER_ADDR", "DET_CHIEF_IP"});
    CHECK(result.status.code == 2);
    CHECK_THAT(result.err, Catch::StartsWith("det-launch: " + expected));
  }
}

TEST_CASE("the help lists every option") {
  const auto result = launch({"--help"});
  CHECK(result.status.ok());
  for (const char* word :
       {"--nproc-per-node", "--nnodes", "--node-rank", "--master-addr", "--master-port", "--help"}) {
    CHECK_THAT(result.out, Catch::Contains(word));
  }
}

TEST_CASE("the program's own options are passed through") {
  CHECK(launch({"--nproc-per-node=1", "echo", "--help", "--", "-x"}).out == "[rank=0] --help -- -x\n");
}

TEST_CASE("a signal to the launcher reaches the ranks") {
  auto child = Child::spawn({.argv = {DET_LAUNCH, "sh", "-c",
                                      "trap 'echo got; exit 3' TERM; echo up; sleep 60 & wait"},
                             .cwd = "",
                             .out = Stream::pipe()})
                   .value();
  char buffer[64];
  std::string out;
  ssize_t got = 0;
  while (out.find("up\n") == std::string::npos &&
         (got = ::read(child.out().get(), buffer, sizeof buffer)) > 0)
    out.append(buffer, got);
  (void)child.signal(SIGTERM);
  CHECK(child.wait(std::chrono::seconds(20)).value().code == 3);
}

TEST_CASE("leftover processes of a rank are killed") {
  // The leftover process ignores SIGTERM and holds the output open.
  const auto result = launch({"sh", "-c", "(trap '' TERM; exec sleep 300) & echo $!; exit 4"});
  CHECK(result.status.code == 4);
  const std::string pid =
      result.out.substr(result.out.find(' ') + 1, result.out.find('\n') - result.out.find(' ') - 1);
  // SIGKILL has been sent; the kernel may need a moment.
  CHECK(wait_until([&] { return !std::filesystem::exists("/proc/" + pid + "/cwd/."); },
                   std::chrono::seconds(20)));
}

TEST_CASE("a process that left its group is not waited for") {
  const auto result = launch({"sh", "-c", "setsid sh -c 'sleep 15' & echo up; exit 4"});
  CHECK_FALSE(result.timed_out);
  CHECK(result.status.code == 4);
  CHECK(result.out == "[rank=0] up\n");
}

TEST_CASE("an ended rank costs the launcher no processor time while another one runs") {
  // Fields 14 and 15: user and system time, in 1/100 s.
  const auto result = launch({"--nproc-per-node=2", "sh", "-c",
                              "[ $RANK = 0 ] && exit; sleep 2; cut -d ' ' -f 14,15 /proc/$PPID/stat"});
  REQUIRE(result.status.ok());
  int user = 0, system = 0;
  REQUIRE(std::sscanf(result.out.c_str(), "[rank=1] %d %d", &user, &system) == 2);
  CHECK(user + system < 50);
}

TEST_CASE("lines end at a newline, a carriage return or both, and lines beyond 63 KiB are broken") {
  CHECK(launch({"printf", "10%%\\r20%%\\r\\nend\\r\\n\\r\\n"}).out ==
        "[rank=0] 10%\r[rank=0] 20%\r\n[rank=0] end\r\n[rank=0] \n");
  const std::string piece(63 * 1024, 'x');
  CHECK(launch({"sh", "-c", "head -c 64512 /dev/zero | tr '\\0' x; printf 'xy\\n'"}).out ==
        "[rank=0] " + piece + "\n[rank=0] xy\n");
}

TEST_CASE("a last line without a newline is not lost") {
  CHECK(launch({"printf", "no end"}).out == "[rank=0] no end\n");
}

}  // namespace
}  // namespace det
