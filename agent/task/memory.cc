#include "agent/task/memory.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/sandbox/control_group.h"

namespace det::agent {
namespace {

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

std::int64_t oom_kills(const std::string& group) {
  const OwnGroup own = own_group("memory");
  std::vector<std::string> places{group};
  // Inside a container the path may be the machine's, while the group's own files are at the root.
  if (group.empty()) places = {own.root + own.path, own.root};
  for (const std::string& place : places) {
    for (const char* file : {"/memory.events", "/memory.oom_control"})
      if (const auto count = entry(place + file, "oom_kill")) return *count;
  }
  return entry("/proc/vmstat", "oom_kill").value_or(0);
}

std::int64_t memory_limit(const std::string& group) {
  const OwnGroup own = own_group("memory");
  std::int64_t least = entry("/proc/meminfo", "MemTotal:").value_or(0) * 1024;
  std::string place = group.empty() ? own.root + own.path : group;
  for (; place.size() >= own.root.size(); place.resize(place.rfind('/'))) {
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      const auto text = read_file(place + file);
      // An unset limit is the word "max" or a huge number.
      const auto limit = text ? number(*text) : std::nullopt;
      if (limit && *limit > 0 && (least == 0 || *limit < least)) least = *limit;
    }
  }
  return least;
}

}  // namespace det::agent
