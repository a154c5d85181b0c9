// det-launch starts ranks with torchrun's variables, and one dead rank ends all with its code.
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>

#include "base/process.h"
#include "base/text.h"

namespace det {
namespace {

ProcessResult launch(std::vector<std::string> arguments, const std::vector<std::string>& changes = {}) {
  arguments.insert(arguments.begin(), DET_LAUNCH);
  return run_process({.argv = arguments, .env = environment_with(changes)}).value();
}

TEST_CASE("each rank gets its variables and its prefix") {
  const auto result = launch({"--nproc-per-node", "2", "--", "sh", "-c",
                              "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR ${MASTER_PORT:+port}"});
  CHECK(result.status.code == 0);
  CHECK_THAT(result.out, Catch::Contains("[rank=0] 0 0 2 2 127.0.0.1 port\n"));
  CHECK_THAT(result.out, Catch::Contains("[rank=1] 1 1 2 2 127.0.0.1 port\n"));
}

TEST_CASE("ranks are as many as slots") {
  CHECK(split(launch({"sh", "-c", "echo x"}, {"DET_SLOT_IDS=[0, 1, 12]"}).out, '\n').size() == 4);
}

TEST_CASE("one dead rank ends all with its code") {
  const auto result = launch({"--nproc-per-node=2", "sh", "-c", "[ $RANK = 1 ] && exit 7; exec sleep 60"});
  CHECK(result.status.code == 7);
}

TEST_CASE("a signal to the launcher reaches the ranks") {
  auto child = Child::spawn({.argv = {DET_LAUNCH, "sh", "-c", "trap 'echo got; exit 3' TERM; echo up; sleep 60 & wait"},
                             .cwd = "", .out = Stream::pipe()}).value();
  char buffer[64];
  std::string out;
  ssize_t got = 0;
  while (out.find("up\n") == std::string::npos && (got = ::read(child.out().get(), buffer, sizeof buffer)) > 0) out.append(buffer, got);
  (void)child.signal(SIGTERM);
  CHECK(child.wait(std::chrono::seconds(20)).value().code == 3);
}

TEST_CASE("what a rank leaves behind does not outlive it") {
  // The leftover ignores SIGTERM and holds the output open.
  const auto result = launch({"sh", "-c", "(trap '' TERM; exec sleep 300) & echo $!; exit 4"});
  CHECK(result.status.code == 4);
  const std::string pid = result.out.substr(result.out.find(' ') + 1, result.out.find('\n') - result.out.find(' ') - 1);
  CHECK_FALSE(std::filesystem::exists("/proc/" + pid + "/cwd/."));
}

TEST_CASE("a process that left its group is not waited for") {
  const auto result = launch({"sh", "-c", "setsid sh -c 'sleep 15' & echo up; exit 4"});
  CHECK_FALSE(result.timed_out);
  CHECK(result.status.code == 4);
  CHECK(result.out == "[rank=0] up\n");
}

TEST_CASE("a last line without an end is not lost") {
  CHECK(launch({"printf", "no end"}).out == "[rank=0] no end\n");
}

}  // namespace
}  // namespace det
