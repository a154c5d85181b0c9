#include "cli/commands/daemons.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/base/wait.h"

namespace det::cli {
namespace fs = std::filesystem;

Result<Daemons> Daemons::of(const std::string& cluster) {
  // The name becomes part of a path and of a command line.
  if (cluster.empty() || cluster.find_first_of("/.") != std::string::npos || has_control_characters(cluster))
    return fail(Code::kInvalidArgument, "\"" + cluster + "\" is no name for a cluster: no slash and no dot");
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  const bool has_data = data != nullptr && *data != '\0';
  if (!has_data && (home == nullptr || *home == '\0'))
    return fail(Code::kFailedPrecondition, "no place for a cluster's data: set HOME or XDG_DATA_HOME");
  const std::string directory =
      (has_data ? std::string(data) : std::string(home) + "/.local/share") + "/determinant/" + cluster;
  TRY(make_directories(directory));
  return Daemons(directory);
}

std::vector<std::string> Daemons::names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_, error))
    if (entry.path().extension() == ".pid") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<pid_t> Daemons::running(const std::string& name) const {
  const auto text = read_file(directory_ + "/" + name + ".pid", 64);
  pid_t pid = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), pid).ec != std::errc() || pid <= 1)
    return std::nullopt;
  // Pids are reused. The --data-dir argument on the command line identifies our daemon.
  const auto command = read_file("/proc/" + std::to_string(pid) + "/cmdline", 1 << 20);
  if (!command || command->find(directory_ + "/" + name + '\0') == std::string::npos) return std::nullopt;
  return pid;
}

Status Daemons::start(const std::string& name, const std::string& program,
                      std::vector<std::string> arguments) const {
  const std::string path = fs::path(program_path()).parent_path() / program;
  arguments.insert(arguments.begin(), path);
  arguments.insert(arguments.end(), {"--data-dir", directory_ + "/" + name});
  // The "ready" line of an earlier process must not be taken for that of the new one.
  TRY(remove_tree(out(name)));
  ProcessOptions options{.argv = std::move(arguments),
                         .in = Stream::null(),
                         .out = Stream::file(out(name)),
                         .err = Stream::file(log(name)),
                         .new_session = true};
  auto child = Child::spawn(options);
  if (!child)
    return fail(child.error().code, path + ": " + child.error().message + "; install it beside det");
  TRY(write_file_atomic(directory_ + "/" + name + ".pid", std::to_string(child->pid()) + "\n", 0600));
  // Right after the start /proc may not show the daemon's arguments yet, which running() compares.
  wait_until([&] { return running(name) || child->ended(); }, std::chrono::seconds(5));
  // The daemon outlives det.
  child->detach();
  return {};
}

Result<bool> Daemons::stop(const std::string& name, Duration grace) const {
  const auto pid = running(name);
  if (pid) {
    ::kill(*pid, SIGTERM);
    if (!wait_until([&] { return !running(name); }, grace)) ::kill(*pid, SIGKILL);
    wait_until([&] { return !running(name); }, grace);
  }
  TRY(remove_tree(directory_ + "/" + name + ".pid"));
  return pid.has_value();
}

std::string tail_of(const std::string& path, std::size_t lines) {
  const auto text = read_file(path, 1LL << 30);
  if (!text) return "";
  std::vector<std::string> all =
      split(std::string_view(*text).substr(0, text->find_last_not_of('\n') + 1), '\n');
  if (all.size() > lines) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(lines));
  return join(all, "\n");
}

}  // namespace det::cli
