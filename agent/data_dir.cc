#include "agent/data_dir.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/text.h"

namespace det::agent {
namespace {

namespace fs = std::filesystem;
constexpr Duration kInUse = std::chrono::minutes(10);

/// Rejects paths, hidden files and anything that needs quoting.
bool is_file_name(const std::string& text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !text.empty() && text.size() <= 200 && text[0] != '.' &&
         text.find_first_not_of(kAllowed) == std::string::npos;
}

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

Result<DataDir> DataDir::open(const std::string& path) {
  std::error_code error;
  const std::string absolute = fs::absolute(path, error).lexically_normal().string();
  TRY(make_directories(absolute, 0700));
  auto lock = FileLock::try_lock(absolute + "/lock");
  if (!lock) {
    if (lock.error().code != Code::kFailedPrecondition) return tl::unexpected(lock.error());
    return fail(Code::kFailedPrecondition, "data_dir: another det-agent uses " + absolute +
                                               "; stop it or give this one a directory of its own");
  }
  for (const char* name : {"/allocations", "/contexts", "/models"})
    TRY(make_directories(absolute + name, 0700));
  // Left by builds that an earlier agent did not finish.
  for (const auto& entry : fs::directory_iterator(absolute + "/models", error)) {
    if (entry.path().filename().string().starts_with("building-")) (void)remove_tree(entry.path());
  }
  // The identity outlives restarts and renames of the agent.
  auto instance = read_file(absolute + "/instance");
  if (!instance || trim(*instance).empty()) {
    instance = uuid4();
    TRY(write_file_atomic(absolute + "/instance", *instance, 0600));
  }
  return DataDir(absolute, std::move(*lock), std::string(trim(*instance)));
}

Result<TaskDir> DataDir::allocation(const AllocationId& id) const {
  if (!is_file_name(id.value)) {
    return fail(Code::kInvalidArgument,
                "allocation id \"" + make_utf8(id.value) + "\" cannot name a directory");
  }
  return TaskDir(path_ + "/allocations/" + id.value);
}

std::vector<AllocationId> DataDir::allocations() const {
  std::vector<AllocationId> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_ + "/allocations", error)) {
    if (is_file_name(entry.path().filename())) found.emplace_back(entry.path().filename().string());
  }
  std::sort(found.begin(), found.end());
  return found;
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

}  // namespace det::agent
