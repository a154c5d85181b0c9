#include "common/build/cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"

namespace det::build {
namespace {

namespace fs = std::filesystem;
constexpr Duration kInUse = std::chrono::minutes(10);

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

void touch_entry(const std::string& path) { (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

void trim_cache(const std::vector<std::string>& directories, std::int64_t bytes) {
  std::vector<Entry> entries;
  std::int64_t sum = 0;
  for (const std::string& directory : directories) {
    std::error_code error;
    for (const auto& item : fs::directory_iterator(directory, error)) {
      const std::string path = item.path().string();
      struct stat status {};
      // Locks and unfinished builds belong to running jobs.
      const bool working =
          path.ends_with(".lock") || item.path().filename().string().starts_with("building-");
      if (working || ::lstat(path.c_str(), &status) != 0) continue;
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
    if (!remove_tree(entry.path)) continue;
    sum -= entry.bytes;
    log::debug("cache entry removed", {{"path", entry.path}, {"bytes", entry.bytes}});
  }
}

}  // namespace det::build
