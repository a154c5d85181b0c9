#include "agent/task/processes.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/base/wait.h"

namespace det::agent {
namespace {

/// Fields of /proc/PID/stat.
struct Stat {
  std::string name;
  char state = '?';
  pid_t parent = 0;
  std::uint64_t start = 0;
};

std::optional<Stat> read_stat(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::nullopt;
  // The name in parentheses may contain any character; the last ')' ends it.
  const std::size_t end = text->rfind(')');
  if (end == std::string::npos || end + 2 >= text->size()) return std::nullopt;
  const std::vector<std::string> fields = split(std::string_view(*text).substr(end + 2), ' ');
  if (fields.size() < 20) return std::nullopt;
  Stat stat;
  if (const std::size_t begin = text->find('('); begin < end)
    stat.name = text->substr(begin + 1, end - begin - 1);
  stat.state = fields[0].empty() ? '?' : fields[0][0];
  std::from_chars(fields[1].data(), fields[1].data() + fields[1].size(), stat.parent);
  std::from_chars(fields[19].data(), fields[19].data() + fields[19].size(), stat.start);
  return stat;
}

bool is_dead(const Stat& stat) { return stat.state == 'Z' || stat.state == 'X'; }

std::vector<pid_t> all_processes() {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc"), &::closedir);
  if (!dir) return pids;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc{} && end == name.data() + name.size()) pids.push_back(pid);
  }
  return pids;
}

}  // namespace

std::optional<ProcessId> identify(pid_t pid) {
  const auto stat = read_stat(pid);
  if (!stat || is_dead(*stat)) return std::nullopt;
  return ProcessId{pid, stat->start};
}

UniqueFd open_process(const ProcessId& process) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  // Checked after opening: from then on the descriptor refers to one process.
  if (fd && identify(process.pid) != process) fd.reset();
  return fd;
}

void request_stop(int pidfd) {
  siginfo_t info{};
  info.si_signo = SIGTERM;
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  (void)::syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, &info, 0);
}

// A snapshot of all parents: /proc offers no consistent view, so callers repeat until nothing is left.
std::vector<pid_t> descendants(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  std::map<pid_t, bool> dead;
  for (const pid_t pid : all_processes()) {
    const auto stat = read_stat(pid);
    if (!stat) continue;
    children.emplace(stat->parent, pid);
    dead[pid] = is_dead(*stat);
  }
  std::vector<pid_t> found{ancestor};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto it = first; it != last; ++it) found.push_back(it->second);
  }
  found.erase(found.begin());
  std::erase_if(found, [&](pid_t pid) { return dead[pid]; });
  return found;
}

std::string describe_process(pid_t pid) {
  const auto stat = read_stat(pid);
  if (!stat) return "";
  std::string text = stat->name + " (pid " + std::to_string(pid) + "): state " + stat->state;
  // The kernel shows "0" for a running process and to readers without permission.
  const auto place = read_file("/proc/" + std::to_string(pid) + "/wchan");
  if (place && !place->empty() && *place != "0") text += ", waits in " + *place;
  return text;
}

std::vector<pid_t> with_environment(const std::string& entry) {
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    if (pid == ::getpid()) continue;
    // /proc/PID/environ holds the environment of exec(); a later setenv() does not change it.
    const auto environment = read_file("/proc/" + std::to_string(pid) + "/environ");
    if (!environment) continue;
    const std::vector<std::string> lines = split(*environment, '\0');
    if (std::find(lines.begin(), lines.end(), entry) != lines.end()) found.push_back(pid);
  }
  return found;
}

bool kill_with_environment(const std::string& entry, Duration timeout) {
  return wait_until(
      [&] {
        const std::vector<pid_t> left = with_environment(entry);
        for (const pid_t pid : left) ::kill(pid, SIGKILL);
        return left.empty();
      },
      timeout);
}

}  // namespace det::agent
