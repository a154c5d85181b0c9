// Runs real processes in real sandboxes. Where the machine permits none, the tests report that and pass.
#include "common/sandbox/sandbox.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
using Access = SandboxMount::Access;

namespace {

const std::string kInit = build_path("/bin/det-task-init");
constexpr uid_t kUser = 1'900'000'123;

std::optional<uid_t> user_of_tasks() { return ::geteuid() == 0 ? std::optional<uid_t>(kUser) : std::nullopt; }

/// A sandbox with a private /tmp, and a directory of the machine beside it.
struct SandboxBench {
  SandboxBench() {
    need(make_directories(dir.path() + "/tmp"));
    REQUIRE(::chmod((dir.path() + "/tmp").c_str(), 01777) == 0);
    sandbox = {.uid = user_of_tasks(),
               .tmp = dir.path() + "/tmp",
               .mounts = {{build_path(), build_path(), Access::kRead}}};
  }
  bool usable() {
    const SandboxReport report = probe_sandbox(sandbox.uid, kInit, dir.path());
    if (report.level == SandboxReport::Level::kOff) WARN(report.missing);
    return report.level != SandboxReport::Level::kOff;
  }
  /// Runs a shell script in the sandbox.
  ProcessResult run(const std::string& script) {
    return need(
        run_process({.argv = sandbox_command(sandbox, {kInit, "exec", user(), "/bin/sh", "-c", script})},
                    {.timeout = 20s}));
  }
  std::string user() const { return sandbox.uid ? std::to_string(*sandbox.uid) : "-"; }

  TemporaryDirectory dir = need(TemporaryDirectory::create());
  Sandbox sandbox;
};

}  // namespace

TEST_CASE("shared memory of a sandbox has the size of the configuration", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable()) return;
  bench.sandbox.shm_bytes = 24576;
  const ProcessResult result =
      bench.run("df --output=size /dev/shm | tail -1; head -c 30000 /dev/zero > /dev/shm/a");
  CAPTURE(result.out, result.err);
  CHECK(trim(result.out) == "24");
  CHECK_FALSE(result.ok());
}

TEST_CASE("a sandboxed process has no privileges, and a user of its own if the agent is root", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable()) return;
  const ProcessResult result = bench.run("id -u; id -G; grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status");
  CAPTURE(result.out, result.err);
  REQUIRE(result.ok());
  const std::string id = std::to_string(bench.sandbox.uid.value_or(::geteuid()));
  CHECK(result.out.starts_with(id + "\n"));
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
    CHECK_THAT(result.out, Catch::Contains(std::string(set) + ":\t0000000000000000"));
  CHECK_THAT(result.out, Catch::Contains("NoNewPrivs:\t1") && Catch::Contains("Seccomp:\t2"));
}

TEST_CASE("a sandboxed process sees neither other processes nor files outside its mounts", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable()) return;
  need(write_file_atomic(bench.dir.path() + "/secret", "x"));
  const ProcessResult result =
      bench.run("ls -d /proc/[0-9]* | wc -l; cat " + bench.dir.path() + "/secret; ls -A /root /home /run");
  CAPTURE(result.out, result.err);
  CHECK(std::stoi(result.out) <= 4);
  CHECK_THAT(result.out, !Catch::Contains("x"));
  CHECK_THAT(result.err, Catch::Contains("/secret: No such file"));
}

TEST_CASE("a private directory of the task is reachable below a hidden one", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable()) return;
  const std::string hidden = bench.dir.path() + "/data", own = hidden + "/allocations/a/workdir";
  need(make_directories(own, 0700));
  if (bench.sandbox.uid) REQUIRE(::chown(own.c_str(), kUser, kUser) == 0);
  need(write_file_atomic(hidden + "/allocations/token", "x"));
  bench.sandbox.mounts.push_back({"", hidden, Access::kHide});
  bench.sandbox.mounts.push_back({own, own, Access::kWrite});
  const ProcessResult result = bench.run("cd " + own + " && touch a && ls ../..");
  CAPTURE(result.out, result.err);
  CHECK(result.ok());
  CHECK(result.out == "a\n");
}

TEST_CASE("a sandboxed process writes only to its own directories", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable()) return;
  const ProcessResult result = bench.run(
      "for p in / /usr /etc /sys /var /run " + build_path() +
      "; do touch $p/probe 2>/dev/null && echo wrote $p; done; touch /tmp/a /dev/shm/a && echo mine");
  CAPTURE(result.out, result.err);
  CHECK(result.out == "mine\n");
  CHECK(path_exists(bench.dir.path() + "/tmp/a"));
}

TEST_CASE("a directory below /var/tmp is mounted, and /var/tmp has the files of /tmp", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable()) return;
  const TemporaryDirectory place = need(TemporaryDirectory::create("sandbox-test", "/var/tmp"));
  const std::string own = place.path() + "/agent/workdir";
  need(make_directories(own, 0755));
  need(write_file_atomic(own + "/a", "seen"));
  need(write_file_atomic(place.path() + "/secret", "x"));
  bench.sandbox.mounts.push_back({"", place.path() + "/agent", Access::kHide});
  bench.sandbox.mounts.push_back({own, own, Access::kRead});
  const ProcessResult result =
      bench.run("cat " + own + "/a && echo b > /var/tmp/b && cat /tmp/b && ls " + place.path());
  CAPTURE(result.out, result.err);
  CHECK(result.ok());
  CHECK(result.out == "seenb\nagent\n");
  CHECK(path_exists(bench.sandbox.tmp + "/b"));
  CHECK_FALSE(path_exists("/var/tmp/b"));
}

TEST_CASE("a sandbox with a network of its own has a loopback interface and nothing else", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable()) return;
  const SandboxReport report = probe_sandbox(bench.sandbox.uid, kInit, bench.dir.path(), true);
  if (!report.own_network) WARN(report.missing);
  if (!report.own_network) return;
  bench.sandbox.own_network = true;
  const ProcessResult result =
      bench.run("tail -n +3 /proc/net/dev | cut -d: -f1; cat /proc/net/route | wc -l");
  CAPTURE(result.out, result.err);
  CHECK(std::string(trim(result.out.substr(0, result.out.find('\n')))) == "lo");
  // The heading of the table of routes.
  CHECK(result.out.ends_with("\n1\n"));
}

TEST_CASE("a directory mounted as its owner keeps its owner", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable() || !bench.sandbox.uid) return;
  const std::string storage = bench.dir.path() + "/storage";
  need(make_directories(storage, 0700));
  REQUIRE(::chown(storage.c_str(), 4242, 4343) == 0);
  bench.sandbox.mounts.push_back({storage, "/ckpt", Access::kWriteAsOwner});
  // In a child, since the mount namespace of this process changes.
  const pid_t child = ::fork();
  if (child == 0) {
    const auto warnings = map_owners(bench.sandbox, bench.dir.path() + "/mounts");
    ::_exit(warnings && warnings->empty() && bench.run("mkdir /ckpt/a && echo hi > /ckpt/a/b").ok() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  struct stat entry {};
  REQUIRE(::stat((storage + "/a/b").c_str(), &entry) == 0);
  CHECK(entry.st_uid == 4242);
  CHECK(entry.st_gid == 4343);
}

TEST_CASE("without id-mapped mounts a task runs as the owner of its checkpoint storage, never as root",
          "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable() || !bench.sandbox.uid) return;
  const auto [owner, user] = GENERATE(std::pair<uid_t, uid_t>(4242, 4242), std::pair<uid_t, uid_t>(0, 5555));
  const std::string storage = bench.dir.path() + "/storage";
  need(make_directories(storage, 0700));
  bench.sandbox.mounts.push_back({storage, "/ckpt", Access::kWriteAsOwner});
  const pid_t child = ::fork();
  if (child == 0) {
    // ramfs supports no id-mapped mounts.
    const bool ready = ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("none", storage.c_str(), "ramfs", 0, "mode=700") == 0 &&
                       ::chown(storage.c_str(), owner, owner) == 0;
    if (!ready) ::_exit(2);
    const auto change = run_as_owner(bench.sandbox, "/ckpt", 5555);
    if (!change || change->find(std::to_string(user)) == std::string::npos) ::_exit(3);
    const auto warnings = map_owners(bench.sandbox, bench.dir.path() + "/mounts");
    if (!warnings || !warnings->empty() || bench.sandbox.uid != user) ::_exit(4);
    ::_exit(bench.run("mkdir /ckpt/a && echo hi > /ckpt/a/b").ok() ? 0 : 5);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a symbolic link in the path of a storage is not followed", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable() || !bench.sandbox.uid) return;
  const std::string link = bench.dir.path() + "/link";
  REQUIRE(::symlink("/etc", link.c_str()) == 0);
  bench.sandbox.mounts.push_back({link + "/apt", "/ckpt", Access::kWriteAsOwner});
  const pid_t child = ::fork();
  if (child == 0) {
    const auto warnings = map_owners(bench.sandbox, bench.dir.path() + "/mounts");
    ::_exit(!warnings && warnings.error().code == Code::kPermissionDenied ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a sandboxed task leaves no process behind, even if its supervisor is killed", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable()) return;
  const TaskDir at(bench.dir.path() + "/task");
  for (const std::string& path : {at.path(), at.run()}) need(make_directories(path, 0755));
  const std::string mark = "sleep-" + uuid4();
  bench.sandbox.mounts.push_back({at.spec(), at.spec(), Access::kRead});
  const bool killed = GENERATE(true, false);
  // A daemon in a session of its own, without the environment of the task.
  const std::string daemon = "exec -a " + mark + " sleep 1000";
  need(at.write_spec(
      {.argv = {"/bin/bash", "-c",
                "setsid env -i /bin/bash -c '" + daemon + "' & " + (killed ? "sleep 1000" : "sleep 0.3")},
       .env = {"PATH=/usr/bin:/bin"},
       .cwd = "/tmp",
       .sandbox = bench.sandbox}));
  const auto daemons = [&] { return need(run_process({.argv = {"pgrep", "-f", "^" + mark}})).out; };
  Child supervisor =
      need(Child::spawn({.argv = {build_path("/bin/det-supervisor"), at.path()}, .new_session = true}));
  if (killed) {
    REQUIRE(wait_until([&] { return !daemons().empty(); }, 10s));
    need(supervisor.signal(SIGKILL));
  }
  REQUIRE(supervisor.wait(20s));
  CHECK(wait_until([&] { return daemons().empty(); }, 10s));
  if (!killed) {
    CHECK(need(at.read_exit()).status == ExitStatus{0, 0});
  }
}

TEST_CASE("a sandboxed task gets SIGTERM before SIGKILL and its exit is reported", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable()) return;
  const TaskDir at(bench.dir.path() + "/task");
  for (const std::string& path : {at.path(), at.run()}) need(make_directories(path, 0755));
  bench.sandbox.mounts.push_back({at.spec(), at.spec(), Access::kRead});
  need(at.write_spec(
      {.argv = {"/bin/sh", "-c", "trap 'exit 7' TERM; touch /tmp/up; while :; do sleep 0.02; done"},
       .env = {"PATH=/usr/bin:/bin"},
       .cwd = "/tmp",
       .sandbox = bench.sandbox}));
  Child supervisor =
      need(Child::spawn({.argv = {build_path("/bin/det-supervisor"), at.path()}, .new_session = true}));
  REQUIRE(wait_until([&] { return path_exists(bench.sandbox.tmp + "/up"); }, 10s));
  request_stop(supervisor.pidfd());
  REQUIRE(supervisor.wait(20s));
  CHECK(need(at.read_exit()).status == ExitStatus{7, 0});
}

TEST_CASE("a sandbox that cannot be created ends the task with a reason", "[sandbox]") {
  SandboxBench bench;
  if (!bench.usable()) return;
  const TaskDir at(bench.dir.path() + "/task");
  for (const std::string& path : {at.path(), at.run()}) need(make_directories(path, 0755));
  bench.sandbox.mounts.push_back({"/no/such/directory", "/data", Access::kRead});
  need(at.write_spec({.argv = {"/bin/true"}, .env = {}, .cwd = "/", .sandbox = bench.sandbox}));
  const auto result = need(run_process({.argv = {build_path("/bin/det-supervisor"), at.path()}}));
  CHECK(result.ok());
  const TaskExit exit = need(at.read_exit());
  CHECK(exit.status == ExitStatus{127, 0});
  CHECK_THAT(exit.message, Catch::Contains("the sandbox of the task could not be created"));
}
