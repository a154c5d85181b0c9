#include "cli/dev/directory_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/base/files.h"

namespace det::cli {
namespace {

namespace fs = std::filesystem;

/// Complete changes only: a file counts once it is closed, so that half-written files are not read.
constexpr std::uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_ONLYDIR;

std::string below(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

}  // namespace

Result<DirectoryWatch> DirectoryWatch::create(const std::string& root) {
  UniqueFd events(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!events) return fail_errno("inotify_init1");
  IgnoreRules rules = builtin_ignore_rules();
  if (path_exists(root + "/.detignore")) {
    TRY_ASSIGN(const std::string text, read_file(root + "/.detignore", 1 << 20));
    rules.add(text);
  }
  DirectoryWatch watch(root, std::move(events), std::move(rules));
  TRY(watch.add(""));
  return watch;
}

Status DirectoryWatch::add(const std::string& path) {
  const std::string directory = path.empty() ? root_ : root_ + "/" + path;
  const int watch = ::inotify_add_watch(events_.get(), directory.c_str(), kEvents);
  if (watch < 0) {
    // The directory was removed again, or is a link.
    if (!path.empty() && (errno == ENOENT || errno == ENOTDIR)) return {};
    return fail_errno(directory);
  }
  directories_[watch] = path;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string child = below(path, it->path().filename().string());
    if (it->is_directory(error) && !it->is_symlink(error) && !rules_.ignored(child, true)) TRY(add(child));
  }
  return {};
}

Result<bool> DirectoryWatch::changed(Duration patience) {
  pollfd wait{events_.get(), POLLIN, 0};
  const int ready = ::poll(
      &wait, 1, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(patience).count()));
  if (ready < 0 && errno != EINTR) return fail_errno("poll");
  if (ready <= 0) return false;
  return read_events();
}

Result<bool> DirectoryWatch::read_events() {
  alignas(inotify_event) char buffer[16 << 10];
  bool any = false;
  for (;;) {
    const ssize_t size = ::read(events_.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EAGAIN) return any;
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno("inotify");
    for (ssize_t at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, buffer + at, sizeof event);
      // The name follows the event and ends with zero bytes.
      const std::string name = event.len > 0 ? buffer + at + sizeof event : "";
      at += static_cast<ssize_t>(sizeof event + event.len);
      if ((event.mask & IN_Q_OVERFLOW) != 0) any = true;
      const auto directory = directories_.find(event.wd);
      if (directory == directories_.end()) continue;
      const std::string parent = directory->second;
      if ((event.mask & IN_DELETE_SELF) != 0 && parent.empty())
        return fail(Code::kNotFound, root_ + " was removed");
      if ((event.mask & IN_IGNORED) != 0) {
        directories_.erase(directory);
        continue;
      }
      const bool is_directory = (event.mask & IN_ISDIR) != 0;
      const std::string path = below(parent, name);
      if (name.empty() || rules_.ignored(path, is_directory)) continue;
      any = true;
      if (is_directory && (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) TRY(add(path));
    }
  }
}

}  // namespace det::cli
