#include "common/base/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/base/wait.h"
#include "need.h"

using namespace det;
using namespace std::chrono_literals;

namespace {
ProcessOptions shell(const std::string& script) { return {.argv = {"sh", "-c", script}}; }
bool alive(pid_t pid) { return ::kill(pid, 0) == 0; }
pid_t read_pid(UniqueFd& fd) {
  std::string text;
  for (char c; ::read(fd.get(), &c, 1) == 1 && c != '\n';) text += c;
  return static_cast<pid_t>(std::stol(text));
}
}  // namespace

TEST_CASE("a run collects stdout, stderr and the exit code", "[process]") {
  const ProcessResult result = need(run_process(shell("cat; echo problem >&2; exit 3"), {}, "typed"));
  CHECK(result.out == "typed");
  CHECK(result.err == "problem\n");
  CHECK(result.status == ExitStatus{3, 0});
  CHECK_FALSE(result.ok());
  CHECK(to_string(result.status) == "exit code 3");
}

TEST_CASE("arguments reach the program unchanged", "[process]") {
  const std::string odd = "a b;$(echo x)'\"\n*";
  CHECK(need(run_process({.argv = {"printf", "%s", odd}})).out == odd);
}

TEST_CASE("the child gets the given environment and working directory", "[process]") {
  ProcessOptions options = shell("echo $A; pwd; env | wc -l");
  options.env = std::vector<std::string>{"A=x=y", "PATH=/usr/bin:/bin"};
  options.cwd = "/usr";
  CHECK_THAT(need(run_process(options)).out, Catch::StartsWith("x=y\n/usr\n"));
  REQUIRE(::setenv("DET_TEST_VARIABLE", "old", 1) == 0);
  ProcessOptions inherited = shell("echo $DET_TEST_VARIABLE-$B");
  inherited.env = environment_with({"DET_TEST_VARIABLE=new", "B=b"});
  CHECK(need(run_process(inherited)).out == "new-b\n");
  inherited.env = environment_with({"DET_TEST_VARIABLE"});
  CHECK(need(run_process(inherited)).out == "-\n");
}

TEST_CASE("large input and large output do not deadlock", "[process]") {
  const std::string input(4 << 20, 'x');
  const ProcessResult result = need(run_process({.argv = {"cat"}}, {}, input));
  CHECK(result.out == input);
  CHECK_FALSE(result.truncated);
}

TEST_CASE("output beyond the bound is dropped and flagged", "[process]") {
  const ProcessResult result = need(run_process(shell("head -c 1000000 /dev/zero"), {60s, 1000}));
  CHECK(result.out.size() == 1000);
  CHECK(result.truncated);
  CHECK(result.ok());
}

TEST_CASE("a child that does not read its input does not kill the parent", "[process]") {
  const ProcessResult result = need(run_process({.argv = {"true"}}, {}, std::string(1 << 20, 'x')));
  CHECK(result.ok());
}

TEST_CASE("at the deadline the whole group is killed", "[process]") {
  const ProcessResult result =
      need(run_process(shell("trap '' TERM; sleep 100 & echo $!; wait; sleep 100"), {300ms}));
  CHECK(result.timed_out);
  CHECK(result.status == ExitStatus{0, SIGKILL});
  const pid_t grandchild = static_cast<pid_t>(std::stol(result.out));
  // Killed. Until init reaps it, it is a zombie without a name in /proc/PID/cmdline.
  CHECK(wait_until(
      [&] {
        return !alive(grandchild) ||
               need(read_file("/proc/" + std::to_string(grandchild) + "/cmdline")).empty();
      },
      10s));
}

TEST_CASE("a missing or forbidden program fails to start", "[process]") {
  CHECK(run_process({.argv = {"no-such-program-here"}}).error().code == Code::kNotFound);
  CHECK(run_process({.argv = {"/no/such/program"}}).error().code == Code::kNotFound);
  CHECK(run_process({.argv = {"/etc/passwd"}}).error().code == Code::kPermissionDenied);
  CHECK(run_process({.argv = {"true"}, .cwd = "/no/such/place"}).error().message ==
        "cannot enter /no/such/place: No such file or directory");
  CHECK(run_process({}).error().code == Code::kInvalidArgument);
}

TEST_CASE("death by a signal is reported as that signal", "[process]") {
  const ProcessResult result = need(run_process(shell("kill -TERM $$")));
  CHECK(result.status == ExitStatus{0, SIGTERM});
  CHECK(result.status.shell_code() == 143);
  CHECK(to_string(result.status) == "signal 15 (Terminated)");
}

TEST_CASE("a child inherits only descriptors 0, 1 and 2", "[process]") {
  const UniqueFd leaky(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(leaky.get() > 2);
  const std::vector<std::string> fds =
      split(trim(need(run_process({.argv = {"ls", "/proc/self/fd"}})).out), '\n');
  CHECK(fds == std::vector<std::string>{"0", "1", "2", "3"});  // descriptor 3 belongs to ls itself
}

TEST_CASE("a child starts with default signals, none blocked, in its own process group", "[process]") {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  REQUIRE(::sigaction(SIGUSR1, &ignore, &before) == 0);
  const std::string status = need(run_process({.argv = {"cat", "/proc/self/status"}})).out;
  REQUIRE(::sigaction(SIGUSR1, &before, nullptr) == 0);
  CHECK_THAT(status, Catch::Contains("SigBlk:\t0000000000000000"));
  CHECK_THAT(status, Catch::Contains("SigIgn:\t0000000000000000"));
  Child child = need(Child::spawn({.argv = {"sleep", "100"}}));
  CHECK(::getpgid(child.pid()) == child.pid());
  ProcessOptions leader{.argv = {"sleep", "100"}};
  leader.new_session = true;
  Child session = need(Child::spawn(leader));
  CHECK(::getsid(session.pid()) == session.pid());
}

TEST_CASE("a child of the lowest priority does not share a core equally with other sessions", "[process]") {
  ProcessOptions options = shell("exec sleep 60");
  options.new_session = true;
  Child child = need(Child::spawn(options));
  const std::string group = "/proc/" + std::to_string(child.pid()) + "/autogroup";
  lower_priority(child.pid());
  CHECK(::getpriority(PRIO_PROCESS, static_cast<id_t>(child.pid())) == 19);
  // Without the file the kernel has no autogroups.
  if (path_exists(group)) CHECK_THAT(need(read_file(group)), Catch::Contains("nice 19"));
}

TEST_CASE("a long-lived child can be signaled and waited for", "[process]") {
  Child child =
      need(Child::spawn({.argv = {"sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done"},
                         .out = Stream::pipe()}));
  char byte;
  REQUIRE(::read(child.out().get(), &byte, 1) == 1);
  CHECK_FALSE(child.wait(0s));
  need(child.signal(SIGTERM));
  CHECK(child.wait(10s) == ExitStatus{7, 0});
  CHECK(child.wait(0s) == ExitStatus{7, 0});
  need(child.signal(SIGKILL));
}

TEST_CASE("stop sends SIGTERM first and SIGKILL after the grace period", "[process]") {
  Child polite = need(Child::spawn({.argv = {"sleep", "100"}}));
  CHECK(polite.stop(10s) == ExitStatus{0, SIGTERM});
  Child stubborn =
      need(Child::spawn({.argv = {"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"},
                         .out = Stream::pipe()}));
  char byte;
  REQUIRE(::read(stubborn.out().get(), &byte, 1) == 1);
  CHECK(stubborn.stop(50ms) == ExitStatus{0, SIGKILL});
}

TEST_CASE("dropping a child kills its group, a detached child lives on", "[process]") {
  pid_t forgotten, detached;
  {
    Child child = need(Child::spawn({.argv = {"sleep", "100"}}));
    forgotten = child.pid();
    Child other =
        need(Child::spawn({.argv = {"sh", "-c", "echo $$; exec sleep 100"}, .out = Stream::pipe()}));
    detached = read_pid(other.out());
    other.detach();
  }
  CHECK_FALSE(alive(forgotten));
  CHECK(alive(detached));
  CHECK(::kill(detached, SIGKILL) == 0);
}

TEST_CASE("output is appended to the given files", "[process]") {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string path = directory.path() + "/out";
  for (const char* word : {"one", "two"}) {
    Child child = need(Child::spawn({.argv = {"echo", word}, .out = Stream::file(path)}));
    REQUIRE(child.wait(10s) == ExitStatus{0, 0});
  }
  CHECK(need(read_file(path)) == "one\ntwo\n");
  CHECK(Child::spawn({.argv = {"true"}, .out = Stream::file("/no/such/file")}).error().code ==
        Code::kNotFound);
}

TEST_CASE("root can start a child as another user, without root's groups", "[process]") {
  if (::geteuid() != 0) return;
  ProcessOptions options = shell("id -u; id -g; id -G");
  options.uid = 12345;
  options.gid = 23456;
  CHECK(need(run_process(options)).out == "12345\n23456\n23456\n");
}
