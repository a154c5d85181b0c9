// Runs the real det-supervisor with real processes. No test leaves a process behind.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "agent/task/log_file.h"
#include "agent/task/processes.h"
#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/base/wait.h"
#include "common/task/task_dir.h"
#include "need.h"
#include "test_paths.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

const std::string kSupervisor = build_path("/bin/det-supervisor");
constexpr char kEnterGroup[] = "echo $$ > $0/cgroup.procs && exec \"$@\"";

/// A control group with a memory limit of 64 MiB.
class SmallGroup {
 public:
  SmallGroup() {
    const std::string first = "/sys/fs/cgroup/memory", root = path_exists(first) ? first : "/sys/fs/cgroup";
    if (::mkdir((root + name_).c_str(), 0755) != 0) return;
    path_ = root + name_;
    const std::string limit = path_exists(path_ + "/memory.max") ? "/memory.max" : "/memory.limit_in_bytes";
    std::ofstream file(path_ + limit);
    usable_ = static_cast<bool>(file << (64 << 20) << std::flush);
  }
  ~SmallGroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  SmallGroup(const SmallGroup&) = delete;
  SmallGroup& operator=(const SmallGroup&) = delete;
  bool usable() const { return usable_; }
  const std::string& path() const { return path_; }

 private:
  std::string name_ = "/det-test-" + uuid4(), path_;
  bool usable_ = false;
};

/// One supervised task in its own directory. An environment variable marks all its processes.
struct Task {
  explicit Task(std::vector<std::string> argv, Duration grace = 500ms, const std::string& group = "",
                Duration hang_timeout = 0s, bool ends_with_agent = false) {
    TaskSpec spec{.argv = std::move(argv),
                  .env = {mark, "PATH=/usr/bin:/bin"},
                  .cwd = dir.path(),
                  .ends_with_agent = ends_with_agent,
                  .grace = grace,
                  .hang_timeout = hang_timeout};
    need(make_directories(at.run()));
    need(at.write_spec(spec));
    child =
        need(Child::spawn({.argv = group.empty() ? std::vector<std::string>{kSupervisor, dir.path()}
                                                 : std::vector<std::string>{"/bin/sh", "-c", kEnterGroup,
                                                                            group, kSupervisor, dir.path()},
                           .in = ends_with_agent ? Stream::pipe() : Stream::null(),
                           .new_session = true}));
  }
  ~Task() {
    if (child) child->stop(0s);
    CHECK(kill_with_environment(mark, 10s));
  }
  TaskExit end() {
    const auto status = child->wait(20s);
    REQUIRE(status);
    CHECK(*status == ExitStatus{0, 0});
    CHECK(with_environment(mark).empty());
    return need(at.read_exit());
  }
  std::vector<LogRecord> log() { return need(read_log(at.log(), {}, 100'000, 64 << 20)).records; }
  std::vector<std::string> texts() {
    std::vector<std::string> texts;
    for (const LogRecord& record : log()) texts.push_back(record.text);
    return texts;
  }
  void wait_for_line(const std::string& text) {
    REQUIRE(wait_until(
        [&] {
          const auto lines = texts();
          return std::find(lines.begin(), lines.end(), text) != lines.end();
        },
        10s));
  }

  TemporaryDirectory dir = need(TemporaryDirectory::create());
  std::string mark = "DET_TEST_MARK=" + uuid4();
  TaskDir at{dir.path()};
  std::optional<Child> child;
};

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }
std::vector<std::string> python(const std::string& script) { return {"python3", "-c", script}; }

}  // namespace

TEST_CASE("the task's exit code is recorded", "[supervisor]") {
  for (const int code : {0, 1, 7, 255}) {
    Task task(shell("exit " + std::to_string(code)));
    CHECK(task.end().status == ExitStatus{code, 0});
  }
}

TEST_CASE("the end of the agent kills the task, if its specification says so", "[supervisor]") {
  Task task(shell("trap '' TERM; (setsid sleep 100 &); echo up; while :; do sleep 1; done"), 60s, "", 0s,
            true);
  task.wait_for_line("up");
  task.child->in().reset();
  CHECK(task.end().status == ExitStatus{0, SIGKILL});
  CHECK(task.texts().back() == "ERROR: the agent has died; killing the task");
}

TEST_CASE("death by a signal is recorded as that signal", "[supervisor]") {
  for (const int number : {SIGKILL, SIGSEGV, SIGTERM}) {
    Task task(shell("kill -" + std::to_string(number) + " $$"));
    CHECK(task.end().status == ExitStatus{0, number});
  }
}

TEST_CASE("a hung task is ended even if it ignores SIGTERM, and its processes' states are logged",
          "[supervisor]") {
  Task task(
      shell("trap '' TERM; mkfifo fifo; touch run/heartbeat; echo last; while :; do read x < fifo; done"),
      200ms, "", 300ms);
  const TaskExit exit = task.end();
  CHECK(exit.hung_for == Duration(300ms));
  CHECK(exit.status == ExitStatus{0, SIGKILL});
  CHECK(exit.last_lines == std::vector<std::string>{"last"});
  const std::vector<std::string> lines = task.texts();
  REQUIRE(lines.size() >= 3);
  CHECK(lines[1] ==
        "ERROR: the task hangs: no batch, no report and no output for 300ms (hang_timeout); sending SIGTERM");
  CHECK_THAT(lines[2], Catch::StartsWith("ERROR: sh (pid ") && Catch::Contains("): state S"));
}

TEST_CASE("a hung task that exits cleanly on SIGTERM still counts as hung", "[supervisor]") {
  Task task(shell("trap 'exit 0' TERM; touch run/heartbeat; while :; do sleep 0.05; done"), 10s, "", 300ms);
  const TaskExit exit = task.end();
  CHECK(exit.status == ExitStatus{0, 0});
  CHECK(exit.hung_for == Duration(300ms));
}

TEST_CASE("a program without heartbeats is not subject to the hang timeout", "[supervisor]") {
  Task task(shell("sleep 0.5; exit 3"), 500ms, "", 100ms);
  const TaskExit exit = task.end();
  CHECK(exit.status == ExitStatus{3, 0});
  CHECK_FALSE(exit.hung_for);
}

TEST_CASE("the last lines of a failing task are stored with its exit", "[supervisor]") {
  Task task(
      shell("for i in 1 2 3 4 5 6 7; do echo out $i; echo err $i >&2; done; printf '\n \nlast' >&2; exit 3"));
  const TaskExit exit = task.end();
  CHECK(exit.last_lines == std::vector<std::string>{"err 4", "err 5", "err 6", "err 7", "last"});
  CHECK_FALSE(exit.memory_limit);
  Task quiet(shell("echo only this; exit 3"));
  CHECK(quiet.end().last_lines == std::vector<std::string>{"only this"});
  Task good(shell("echo fine >&2"));
  CHECK(good.end().last_lines.empty());
}

TEST_CASE("a long last line loses its middle and keeps the place of the error at its end", "[supervisor]") {
  Task task(shell("printf 'error: %0400d (model_def.cpp:7)' 0 >&2; exit 3"));
  const std::vector<std::string> lines = task.end().last_lines;
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].size() == 300);
  CHECK(lines[0].starts_with("error: 000"));
  CHECK(lines[0].find("0 ... 0") != std::string::npos);
  CHECK(lines[0].ends_with("0 (model_def.cpp:7)"));
}

TEST_CASE("a kill by the kernel's memory limit is distinguished from any other SIGKILL", "[supervisor]") {
  const SmallGroup group;
  if (!group.usable()) {
    WARN("skipped: no control group with a limit can be made here");
    return;
  }
  {
    Task greedy(python("print('begins', flush=True); x = bytearray(256 << 20)"), 500ms, group.path());
    const TaskExit exit = greedy.end();
    CHECK(exit.status == ExitStatus{0, SIGKILL});
    CHECK(exit.memory_limit == 64 << 20);
    CHECK(exit.last_lines == std::vector<std::string>{"begins"});
  }
  Task of_a_shell(shell("python3 -c 'x = bytearray(256 << 20)'; exit $?"), 500ms, group.path());
  CHECK(of_a_shell.end().memory_limit == 64 << 20);
  Task killed(shell("kill -9 $$"), 500ms, group.path());
  CHECK_FALSE(killed.end().memory_limit);
}

TEST_CASE("an absent program exits with 127, a forbidden one with 126, and the log has the reason",
          "[supervisor]") {
  Task absent({"/no/such/program"});
  const TaskExit exit = absent.end();
  CHECK(exit.status == ExitStatus{127, 0});
  CHECK_THAT(exit.message, Catch::Contains("/no/such/program"));
  CHECK_THAT(absent.texts().at(0), Catch::Contains("/no/such/program"));
  Task forbidden({"/etc/passwd"});
  CHECK(forbidden.end().status == ExitStatus{126, 0});
}

TEST_CASE("output is recorded with its time, stream and exact bytes", "[supervisor]") {
  Task task(shell("printf 'one\\n\\000two\\n'; printf 'err\\n' >&2; printf last"));
  task.end();
  std::vector<std::string> out, err;
  for (const LogRecord& record : task.log()) {
    CHECK(wall_now().micros - record.time.micros < 60'000'000);
    (record.stream == LogStream::kStdout ? out : err).push_back(record.text);
  }
  CHECK(out == std::vector<std::string>{"one", std::string("\0two", 4), "last"});
  CHECK(err == std::vector<std::string>{"err"});
}

TEST_CASE("bytewise writes and a line of one megabyte are recorded", "[supervisor]") {
  Task task(
      python("import os\n"
             "for c in b'slow line\\n': os.write(1, bytes([c]))\n"
             "os.write(1, b'x' * 1000000 + b'\\nend\\n')"));
  task.end();
  const auto lines = task.texts();
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "slow line");
  CHECK(lines[1].size() <= kLineBytes);
  CHECK(lines[2] == "end");
}

TEST_CASE("a daemon that leaves its session and ignores signals ends with the task", "[supervisor]") {
  Task task(
      python("import os, signal, sys, time\n"
             "if os.fork() == 0:\n"
             "  os.setsid()\n"
             "  for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\n"
             "  if os.fork() == 0:\n"
             "    print('daemon', flush=True)\n"
             "    time.sleep(1000)\n"
             "  os._exit(0)\n"
             "os.wait()\n"
             "sys.exit(3)\n"));
  const MonoTime begun = mono_now();
  CHECK(task.end().status == ExitStatus{3, 0});
  CHECK(mono_now() - begun < 5s);
}

TEST_CASE("a stop request of the agent lets the task exit by itself", "[supervisor]") {
  Task task(shell("trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.05; done"), 10s);
  task.wait_for_line("up");
  request_stop(task.child->pidfd());
  CHECK(task.end().status == ExitStatus{9, 0});
  task.wait_for_line("bye");
}

TEST_CASE("a SIGTERM that is no request of the agent does not end the task", "[supervisor]") {
  Task task(shell("trap 'exit 9' TERM; mkfifo go; echo up; read line < go; echo \"$line\"; exit 4"));
  task.wait_for_line("up");
  need(task.child->signal(SIGTERM));
  // The supervisor reads the signal before it reads the output that follows.
  std::ofstream(task.dir.path() + "/go") << "went on\n";
  CHECK(task.end().status == ExitStatus{4, 0});
  task.wait_for_line("went on");
}

TEST_CASE("a task that ignores SIGTERM is killed after the grace period, with all its children",
          "[supervisor]") {
  Task task(shell("trap '' TERM; (trap '' TERM; sleep 1000) & echo up; wait; sleep 1000"), 300ms);
  task.wait_for_line("up");
  const MonoTime asked = mono_now();
  request_stop(task.child->pidfd());
  CHECK(task.end().status == ExitStatus{0, SIGKILL});
  CHECK(mono_now() - asked >= 300ms);
  CHECK(mono_now() - asked < 5s);
}

TEST_CASE("a killed supervisor takes its task along; leftover processes can be found and killed",
          "[supervisor]") {
  Task task(shell("(setsid sleep 1000 &) ; echo up; sleep 1000"));
  task.wait_for_line("up");
  need(task.child->signal(SIGKILL));
  REQUIRE(task.child->wait(10s) == ExitStatus{0, SIGKILL});
  CHECK(kill_with_environment(task.mark, 10s));
  CHECK(with_environment(task.mark).empty());
  CHECK(task.at.read_exit().error().code == Code::kNotFound);
}

TEST_CASE("a supervisor is identified by pid and start time only", "[supervisor]") {
  Task task(shell("echo up; sleep 1000"));
  task.wait_for_line("up");
  const ProcessId known = need(task.at.read_supervisor());
  CHECK(known.pid == task.child->pid());
  CHECK(open_process(known));
  CHECK_FALSE(open_process({known.pid, known.start + 1}));
  request_stop(task.child->pidfd());
  task.end();
  CHECK_FALSE(open_process(known));
}

TEST_CASE("the supervisor does not wait for a foreign process that holds the task's output open",
          "[supervisor]") {
  Task task(shell("echo up; while :; do sleep 0.05; done"));
  task.wait_for_line("up");
  // This process is not a child of the task and opens the task's end of the pipe.
  const pid_t main = descendants(task.child->pid()).at(0);
  const UniqueFd held(::open(("/proc/" + std::to_string(main) + "/fd/1").c_str(), O_WRONLY | O_CLOEXEC));
  REQUIRE(held);
  request_stop(task.child->pidfd());
  CHECK(task.end().status == ExitStatus{0, SIGTERM});
}

TEST_CASE("a spec is read back byte for byte", "[supervisor]") {
  const TemporaryDirectory dir = need(TemporaryDirectory::create());
  const TaskDir at(dir.path());
  const TaskSpec spec{.argv = {"a b", "\xff"},
                      .env = {"X=\n\r=;"},
                      .cwd = "/x",
                      .attaches = true,
                      .grace = 3s,
                      .sandbox = Sandbox{.root = "/i", .tmp = "/t", .own_network = true},
                      .master = "h:1",
                      .groups = {"/g"}};
  need(at.write_spec(spec));
  const TaskSpec back = need(at.read_spec());
  CHECK(back.argv == spec.argv);
  CHECK(back.env == spec.env);
  CHECK(back.cwd == spec.cwd);
  CHECK(back.attaches);
  CHECK(back.grace == spec.grace);
  CHECK(back.sandbox == spec.sandbox);
  CHECK(back.master == spec.master);
  CHECK(back.groups == spec.groups);
}
