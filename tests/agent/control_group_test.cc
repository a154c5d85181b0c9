// Limits by control groups: with the kernel of this machine where it offers them, and on a directory that has
// the files of version 2.
#include "common/sandbox/control_group.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <vector>

#include "common/base/files.h"
#include "common/base/secret.h"
#include "need.h"

using namespace det;

namespace {

/// A group of the kernel, removed at the end. Without one the machine offers none.
struct KernelGroup {
  explicit KernelGroup(const GroupLimits& limits) {
    const auto place = open_group_place();
    if (!place) WARN(place.error().message);
    if (place) directories = need(make_group(*place, "test-" + uuid4(), limits));
  }
  ~KernelGroup() { remove_group(directories); }
  KernelGroup(const KernelGroup&) = delete;
  KernelGroup& operator=(const KernelGroup&) = delete;

  /// Runs `action` in a process of the group. Returns its status as of wait().
  int run(const std::function<int()>& action) const {
    const auto files = need(open_group(directories));
    const pid_t child = ::fork();
    if (child == 0) ::_exit(enter_group(files, 0) ? action() : 99);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
  }
  std::vector<std::string> directories;
};

/// The files of version 2 in a directory.
struct FakeTree {
  explicit FakeTree(const std::string& controllers) {
    for (const std::string group : {"", "/determinant"}) {
      put(group + "/cgroup.controllers", controllers + "\n");
      put(group + "/cgroup.subtree_control", controllers + "\n");
    }
    for (const char* file : {"memory.max", "memory.swap.max", "cpu.max", "pids.max", "cgroup.procs"})
      put(std::string("/determinant/task/") + file, "");
  }
  void put(const std::string& path, const std::string& text) {
    const std::string whole = dir.path() + path;
    need(make_directories(whole.substr(0, whole.rfind('/'))));
    need(write_file_atomic(whole, text));
  }
  std::string get(const std::string& path) const { return need(read_file(dir.path() + path)); }
  TemporaryDirectory dir = need(TemporaryDirectory::create());
};

}  // namespace

TEST_CASE("a process beyond the memory of its group is killed", "[groups]") {
  const KernelGroup group({.memory_bytes = 32 << 20});
  if (group.directories.empty()) return;
  const int status = group.run([] {
    std::vector<char> memory(128 << 20, 'x');
    return memory[memory.size() / 2] == 'x' ? 0 : 1;
  });
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(group.run([] {
    std::vector<char> memory(8 << 20, 'x');
    return memory[memory.size() / 2] == 'x' ? 0 : 1;
  }) == 0);
}

TEST_CASE("a group has no more processes than its limit", "[groups]") {
  const KernelGroup group({.processes = 4});
  if (group.directories.empty()) return;
  const int status = group.run([] {
    int made = 0, error = 0;
    std::vector<pid_t> children;
    for (; made < 10; ++made) {
      const pid_t child = ::fork();
      if (child < 0) error = errno;
      if (child < 0) break;
      if (child == 0) ::pause();
      children.push_back(child);
    }
    for (const pid_t child : children) ::kill(child, SIGKILL), ::waitpid(child, nullptr, 0);
    return made == 3 && error == EAGAIN ? 0 : 1;
  });
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("limits of a group change when it is made again", "[groups]") {
  const KernelGroup group({.memory_bytes = 32 << 20, .cpu_millis = 1500});
  if (group.directories.empty()) return;
  const auto place = need(open_group_place());
  const std::string name = group.directories[0].substr(group.directories[0].rfind('/') + 1);
  CHECK(need(make_group(place, name, {.memory_bytes = 64 << 20})) == group.directories);
  CHECK(need(make_group(place, name, {.memory_bytes = 16 << 20})) == group.directories);
  const std::string file = place.unified ? "/memory.max" : "/memory.limit_in_bytes";
  CHECK(need(read_file(group.directories[0] + file)) == std::to_string(16 << 20) + "\n");
}

TEST_CASE("a user that cannot make groups is told so, also where another user has made the place",
          "[groups]") {
  if (::geteuid() != 0 || !open_group_place()) return;
  constexpr uid_t kNobody = 65534;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(2);
    const auto place = open_group_place();
    const bool told = !place && place.error().code == Code::kFailedPrecondition &&
                      place.error().message.find("Permission denied") != std::string::npos;
    ::_exit(told ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("limits of version 2 are written to the files of the group", "[groups]") {
  const FakeTree tree("cpuset cpu memory pids");
  const GroupPlace place = need(open_group_place(tree.dir.path()));
  CHECK(place == GroupPlace{true, {tree.dir.path() + "/determinant"}});
  const auto made =
      need(make_group(place, "task", {.memory_bytes = 1 << 30, .cpu_millis = 2500, .processes = 100}));
  CHECK(made == std::vector<std::string>{tree.dir.path() + "/determinant/task"});
  CHECK(tree.get("/determinant/task/memory.max") == "1073741824");
  CHECK(tree.get("/determinant/task/memory.swap.max") == "0");
  CHECK(tree.get("/determinant/task/cpu.max") == "250000 100000");
  CHECK(tree.get("/determinant/task/pids.max") == "100");
}

TEST_CASE("a missing controller is named", "[groups]") {
  const FakeTree tree("cpu memory");
  const auto place = open_group_place(tree.dir.path());
  REQUIRE_FALSE(place);
  CHECK(place.error().code == Code::kFailedPrecondition);
  CHECK_THAT(place.error().message, Catch::Contains("has no controller pids"));
  const TemporaryDirectory empty = need(TemporaryDirectory::create());
  CHECK_THAT(open_group_place(empty.path()).error().message, Catch::Contains("no controller memory"));
}
