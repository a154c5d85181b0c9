#include "agent/data_dir.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/secret.h"
#include "common/base/text.h"

namespace det::agent {
namespace {

namespace fs = std::filesystem;
constexpr Duration kMaxLease = std::chrono::hours(24 * 365);  // more is a damaged file

/// Rejects paths, hidden files and anything that needs quoting.
bool is_file_name(const std::string& text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !text.empty() && text.size() <= 200 && text[0] != '.' &&
         text.find_first_not_of(kAllowed) == std::string::npos;
}

}  // namespace

Result<DataDir> DataDir::open(const std::string& path) {
  std::error_code error;
  const std::string absolute = fs::absolute(path, error).lexically_normal().string();
  TRY(make_directories(absolute, 0700));
  auto lock = FileLock::try_lock(absolute + "/lock");
  if (!lock) {
    if (lock.error().code != Code::kFailedPrecondition) return tl::unexpected(lock.error());
    return fail(Code::kFailedPrecondition,
                "data_dir: another det-agent uses " + absolute + "; stop it, or set another data_dir");
  }
  for (const char* name : {"/allocations", "/contexts", "/models"})
    TRY(make_directories(absolute + name, 0700));
  // Left by builds, copies of images and removals that an earlier agent did not finish.
  for (const char* cache : {"/models", "/images", "/contexts"}) {
    for (const auto& entry : fs::directory_iterator(absolute + cache, error)) {
      if (entry.path().filename().string().starts_with("building-")) (void)remove_tree(entry.path());
    }
  }
  // The identity outlives restarts and renames of the agent.
  auto instance = read_file(absolute + "/instance");
  if (!instance || trim(*instance).empty()) {
    instance = uuid4();
    TRY(write_file_atomic(absolute + "/instance", *instance, 0600));
  }
  return DataDir(absolute, std::move(*lock), std::string(trim(*instance)));
}

std::optional<Duration> DataDir::lease() const {
  const auto text = read_file(path_ + "/lease", 64);
  std::int64_t seconds = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), seconds).ec != std::errc() ||
      seconds <= 0 || seconds > kMaxLease / std::chrono::seconds(1))
    return std::nullopt;
  return std::chrono::seconds(seconds);
}

Status DataDir::store_lease(Duration lease) const {
  if (lease == this->lease()) return {};
  const std::int64_t seconds = lease / std::chrono::seconds(1);
  // It concerns allocations that run, which a power failure ends.
  return replace_file(path_ + "/lease", std::to_string(seconds) + "\n", 0600);
}

Result<TaskDir> DataDir::allocation(const AllocationId& id) const {
  if (!is_file_name(id.value)) {
    return fail(Code::kInvalidArgument,
                "allocation id \"" + make_utf8(id.value) + "\" is not a valid directory name");
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

}  // namespace det::agent
