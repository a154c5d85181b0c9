#include "agent/task/memory.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "common/base/files.h"
#include "common/base/text.h"

namespace det::agent {
namespace {

constexpr char kRoot[] = "/sys/fs/cgroup";

/// Location of the control group's files.
struct Group {
  std::string root, path;  ///< the group's directory is root + path
  bool unified = false;
};

/// Returns the memory hierarchy of cgroup version 1 if there is one, else the unified hierarchy.
Group group() {
  Group found{.root = kRoot, .path = "", .unified = true};
  const auto text = read_file("/proc/self/cgroup");
  if (!text) return found;
  for (const std::string& line : split(*text, '\n')) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const std::string path = line.substr(second + 1) == "/" ? "" : line.substr(second + 1);
    if (std::find(controllers.begin(), controllers.end(), "memory") != controllers.end())
      return {.root = std::string(kRoot) + "/memory", .path = path, .unified = false};
    if (line.starts_with("0::")) found.path = path;
  }
  return found;
}

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

/// Returns the number after `name` in a file with lines "name number unit".
std::optional<std::int64_t> entry(const std::string& file, const std::string& name) {
  const auto text = read_file(file);
  if (!text) return std::nullopt;
  for (const std::string& line : split(*text, '\n')) {
    if (!line.starts_with(name)) continue;
    const std::size_t digits = line.find_first_not_of(' ', name.size());
    if (digits != std::string::npos && digits > name.size()) return number(line.substr(digits));
  }
  return std::nullopt;
}

}  // namespace

std::int64_t oom_kills() {
  const Group where = group();
  const std::string file = where.unified ? "/memory.events" : "/memory.oom_control";
  // Inside a container the path may be the machine's, while the group's own files are at the root.
  for (const std::string& path : {where.root + where.path, where.root}) {
    if (const auto count = entry(path + file, "oom_kill")) return *count;
  }
  return entry("/proc/vmstat", "oom_kill").value_or(0);
}

std::int64_t memory_limit() {
  const Group where = group();
  const std::string file = where.unified ? "/memory.max" : "/memory.limit_in_bytes";
  std::int64_t least = entry("/proc/meminfo", "MemTotal:").value_or(0) * 1024;
  std::string path = where.path;
  for (;;) {
    const auto text = read_file(where.root + path + file);
    // An unset limit is the word "max" or a huge number.
    const auto limit = text ? number(*text) : std::nullopt;
    if (limit && *limit > 0 && (least == 0 || *limit < least)) least = *limit;
    if (path.empty()) return least;
    path.resize(path.rfind('/'));
  }
}

}  // namespace det::agent
