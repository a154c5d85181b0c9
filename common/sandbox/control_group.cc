#include "common/sandbox/control_group.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/base/files.h"
#include "common/base/text.h"

namespace det {
namespace {

constexpr std::array<std::string_view, 3> kControllers{"memory", "cpu", "pids"};
constexpr char kGroupName[] = "/determinant";
constexpr std::int64_t kCpuPeriodMicros = 100'000;

/// Writes a value to a file of a group, which the kernel takes as a whole.
Status write_value(const std::string& path, const std::string& value) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), value.data(), value.size()) < 0) return fail_errno(path);
  return {};
}

Status make_group_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return fail_errno(path);
}

/// As make_group_directory(), for a directory in which this user can make groups.
Status make_place(const std::string& path) {
  TRY(make_group_directory(path));
  // Another user may have made it.
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0 ? Status() : fail_errno(path);
}

bool has_word(const std::string& text, std::string_view word) {
  const std::vector<std::string> words = split(std::string(trim(text)), ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Enables the controllers for children of the group. Errors: a controller that the group does not have, or
/// a group with processes.
Status enable_controllers(const std::string& group) {
  TRY_ASSIGN(const std::string offered, read_file(group + "/cgroup.controllers"));
  TRY_ASSIGN(const std::string enabled, read_file(group + "/cgroup.subtree_control"));
  for (const std::string_view name : kControllers) {
    if (!has_word(offered, name))
      return fail(Code::kFailedPrecondition, group + " has no controller " + std::string(name));
    if (!has_word(enabled, name))
      TRY(write_value(group + "/cgroup.subtree_control", "+" + std::string(name)));
  }
  return {};
}

/// Files and values of the limits in one hierarchy.
std::vector<std::pair<std::string, std::string>> values_of(const GroupLimits& limits, bool unified) {
  const auto number = [](std::int64_t value, const char* none) {
    return value > 0 ? std::to_string(value) : std::string(none);
  };
  const std::int64_t quota = limits.cpu_millis * (kCpuPeriodMicros / 1000);
  if (unified) {
    return {{"memory.max", number(limits.memory_bytes, "max")},
            {"memory.swap.max", limits.memory_bytes > 0 ? "0" : "max"},
            {"cpu.max", number(quota, "max") + " " + std::to_string(kCpuPeriodMicros)},
            {"pids.max", number(limits.processes, "max")}};
  }
  // Memory together with swap cannot have a lower limit than memory: first or last, as limits grow or shrink.
  return {{"memory.memsw.limit_in_bytes", "-1"},
          {"memory.limit_in_bytes", number(limits.memory_bytes, "-1")},
          {"memory.memsw.limit_in_bytes", number(limits.memory_bytes, "-1")},
          {"cpu.cfs_period_us", std::to_string(kCpuPeriodMicros)},
          {"cpu.cfs_quota_us", number(quota, "-1")},
          {"pids.max", number(limits.processes, "max")}};
}

/// Sets the limits of the controllers that `directory` has. Accounting of swap may be switched off.
Status set_limits(const std::string& directory, const GroupLimits& limits, bool unified) {
  for (const auto& [file, value] : values_of(limits, unified)) {
    const bool has = path_exists(directory + "/" + file);
    if (has) TRY(write_value(directory + "/" + file, value));
  }
  return {};
}

}  // namespace

OwnGroup own_group(std::string_view controller, const std::string& root) {
  OwnGroup found{.root = root, .path = "", .unified = true};
  const auto text = read_file("/proc/self/cgroup");
  if (!text) return found;
  for (const std::string& line : split(*text, '\n')) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const std::string path = line.substr(second + 1) == "/" ? "" : line.substr(second + 1);
    if (std::find(controllers.begin(), controllers.end(), controller) != controllers.end())
      return {.root = root + "/" + std::string(controller), .path = path, .unified = false};
    if (line.starts_with("0::")) found.path = path;
  }
  return found;
}

Result<GroupPlace> open_group_place(const std::string& root) {
  GroupPlace place{.unified = path_exists(root + "/cgroup.controllers"), .directories = {}};
  const auto missing = [](const Error& error) {
    return fail(Code::kFailedPrecondition, "control groups: " + error.message);
  };
  if (place.unified) {
    // Beside the group of this process. In a container the path may be the machine's.
    const std::string path = own_group("", root).path;
    std::string parent = root + path.substr(0, std::min(path.rfind('/'), path.size()));
    if (!path_exists(parent)) parent = root;
    place.directories = {parent + kGroupName};
    Status made = enable_controllers(parent);
    if (made) made = make_place(place.directories[0]);
    if (made) made = enable_controllers(place.directories[0]);
    return made ? Result<GroupPlace>(std::move(place)) : missing(made.error());
  }
  for (const std::string_view controller : kControllers) {
    const OwnGroup own = own_group(controller, root);
    const std::string hierarchy = root + "/" + std::string(controller);
    if (!path_exists(hierarchy + "/cgroup.procs"))
      return missing(
          {Code::kNotFound, "the kernel has no controller " + std::string(controller) + " below " + root});
    const std::string parent = hierarchy + (path_exists(hierarchy + own.path) ? own.path : "");
    if (auto made = make_place(parent + kGroupName); !made) return missing(made.error());
    place.directories.push_back(parent + kGroupName);
  }
  return place;
}

Result<std::vector<std::string>> make_group(const GroupPlace& place, const std::string& name,
                                            const GroupLimits& limits) {
  std::vector<std::string> made;
  for (const std::string& parent : place.directories) {
    const std::string directory = parent + "/" + name;
    Status done = make_group_directory(directory);
    if (done) made.push_back(directory);
    if (done) done = set_limits(directory, limits, place.unified);
    if (done) continue;
    remove_group(made);
    return tl::unexpected(done.error());
  }
  return made;
}

Result<std::vector<UniqueFd>> open_group(const std::vector<std::string>& directories) {
  std::vector<UniqueFd> files;
  for (const std::string& directory : directories) {
    const std::string path = directory + "/cgroup.procs";
    files.emplace_back(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!files.back()) return fail_errno(path);
  }
  return files;
}

Status enter_group(const std::vector<UniqueFd>& group, pid_t pid) {
  const std::string number = std::to_string(pid);
  for (const UniqueFd& file : group)
    if (::write(file.get(), number.data(), number.size()) < 0) return fail_errno("entering a control group");
  return {};
}

void remove_group(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) (void)::rmdir(directory.c_str());
}

}  // namespace det
