#include "common/build/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/process.h"
#include "common/base/secret.h"
#include "common/base/wait.h"

namespace det::build {
namespace {

namespace fs = std::filesystem;
constexpr Duration kInUse = std::chrono::minutes(10);
constexpr Duration kAbandoned = std::chrono::hours(24);  // of a build that was killed

/// An entry of a cache.
struct Entry {
  std::string path;
  std::int64_t bytes = 0;
  WallTime used;
};

std::int64_t tree_bytes(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return static_cast<std::int64_t>(fs::file_size(path, ignored));
  std::int64_t sum = 0;
  for (fs::recursive_directory_iterator it(path, ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    if (it->is_regular_file(ignored)) sum += static_cast<std::int64_t>(it->file_size(ignored));
  }
  return sum;
}

}  // namespace

std::string models_directory(const std::string& otherwise) {
  const std::string cache = environment_variable("XDG_CACHE_HOME"), home = environment_variable("HOME");
  const std::string path = !cache.empty()  ? cache + "/determinant/models"
                           : !home.empty() ? home + "/.cache/determinant/models"
                                           : "";
  if (path.empty() || !make_directories(path, 0700)) return otherwise;
  // An entry is code that runs: a directory of another user is not used.
  struct stat status {};
  const bool ours = ::stat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid();
  return ours && ::access(path.c_str(), W_OK | X_OK) == 0 ? path : otherwise;
}

Result<FileLock> lock_entry(const std::string& entry, MonoTime deadline, const std::stop_token& stop) {
  Result<FileLock> lock = fail(Code::kFailedPrecondition, "");
  // The kernel releases the lock if its holder dies.
  (void)wait_until(
      [&] {
        lock = FileLock::try_lock(entry + ".lock");
        return stop.stop_requested() || lock || lock.error().code != Code::kFailedPrecondition;
      },
      std::max(deadline - mono_now(), Duration(0)));
  if (stop.stop_requested()) return fail(Code::kCancelled, "the build was stopped");
  if (!lock && lock.error().code == Code::kFailedPrecondition)
    return fail(Code::kUnavailable, "another process does not finish " + entry);
  return lock;
}

Status publish_entry(TemporaryDirectory& work, const std::string& entry) {
  std::error_code error;
  fs::rename(work.path(), entry, error);
  if (error) return fail(Code::kUnavailable, entry + ": " + error.message());
  (void)work.release();
  return sync_directory(fs::path(entry).parent_path());
}

Status remove_entry(const std::string& path) {
  const fs::path doomed = fs::path(path).parent_path() / ("building-removed-" + to_hex(random_bytes(6)));
  if (::rename(path.c_str(), doomed.c_str()) != 0) return errno == ENOENT ? Status() : fail_errno(path);
  return remove_tree(doomed.string());
}

void touch_entry(const std::string& path) { (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

void trim_cache(const std::vector<std::string>& directories, std::int64_t bytes) {
  std::vector<Entry> entries;
  std::int64_t sum = 0;
  for (const std::string& directory : directories) {
    std::error_code error;
    for (const auto& item : fs::directory_iterator(directory, error)) {
      const std::string path = item.path().string();
      struct stat status {};
      if (::lstat(path.c_str(), &status) != 0) continue;
      // Locks and unfinished builds belong to running jobs.
      const bool building = item.path().filename().string().starts_with("building-") &&
                            status.st_mtim.tv_sec * 1'000'000 > wall_now().micros - kAbandoned.count();
      if (building || path.ends_with(".lock")) continue;
      entries.push_back(
          {path, tree_bytes(path), {status.st_mtim.tv_sec * 1'000'000 + status.st_mtim.tv_nsec / 1000}});
      sum += entries.back().bytes;
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  // Recently used entries may be in use by an allocation.
  const std::int64_t in_use = wall_now().micros - kInUse.count();
  for (const Entry& entry : entries) {
    if (sum <= bytes || entry.used.micros >= in_use) return;
    if (!remove_entry(entry.path)) continue;
    sum -= entry.bytes;
    log::debug("cache entry removed", {{"path", entry.path}, {"bytes", entry.bytes}});
  }
}

}  // namespace det::build
