#include "agent/shared_libraries.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/crypto/digest.h"
#include "common/storage/bucket.h"
#include "common/storage/root.h"

namespace det::agent {
namespace {

constexpr const char* kFolder = "det-builds";
/// A trial with debug information and a statically linked library is smaller.
constexpr std::int64_t kMaxLibraryBytes = 256LL << 20;

std::string text_of(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

/// Returns the names of the oldest files beyond kMaxLibraries. `files`: times of the last write, and names.
template <typename Time>
std::vector<std::string> surplus(std::vector<std::pair<Time, std::string>> files) {
  std::sort(files.begin(), files.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i + SharedLibraries::kMaxLibraries < files.size(); ++i)
    names.push_back(std::move(files[i].second));
  return names;
}

class InDirectory : public SharedLibraries {
 public:
  /// `storage`: a checkpoint_storage of type shared_fs with a host_path.
  explicit InDirectory(const Json& storage) {
    root_.base = text_of(storage, "host_path");
    const std::filesystem::path below = text_of(storage, "storage_path");
    // An absolute path lies below host_path, as the master has checked.
    root_.below = below.is_absolute() ? below.lexically_relative(root_.base).lexically_normal()
                                      : below.lexically_normal();
    if (root_.below == ".") root_.below.clear();
  }

 private:
  Status write(const std::string& key, const std::string& content) const override {
    TRY_ASSIGN(const storage::PinnedRoot folder, directory(true));
    if (auto known = read(key); known && *known == content) return {};
    TRY(replace_file(folder.path() + "/" + key + ".so", content, 0644));
    namespace fs = std::filesystem;
    std::vector<std::pair<fs::file_time_type, std::string>> files;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder.path(), error)) {
      if (entry.path().extension() == ".so") files.emplace_back(entry.last_write_time(error), entry.path());
    }
    for (const std::string& file : surplus(std::move(files))) fs::remove(file, error);
    return {};
  }

  Result<std::string> read(const std::string& key) const override {
    TRY_ASSIGN(const storage::PinnedRoot folder, directory(false));
    TRY_ASSIGN(const UniqueFd file, folder.open_beneath(key + ".so", O_RDONLY | O_NONBLOCK));
    struct stat status {};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
      return fail(Code::kDataLoss, root_.path() + "/" + kFolder + "/" + key + ".so is not a plain file");
    return read_file("/proc/self/fd/" + std::to_string(file.get()), kMaxLibraryBytes);
  }

  Result<storage::PinnedRoot> directory(bool create) const {
    TRY_ASSIGN(const storage::PinnedRoot root, storage::PinnedRoot::open(root_));
    auto found = root.directory(kFolder);
    if (found || !create || found.error().code != Code::kNotFound) return found;
    if (::mkdirat(root.fd(), kFolder, 0755) != 0 && errno != EEXIST) return fail_errno(root_.path());
    return root.directory(kFolder);
  }

  storage::Root root_;
};

class InBucket : public SharedLibraries {
 public:
  // Compilation is the fallback, so a store that does not answer delays a build only for seconds.
  explicit InBucket(storage::Location location)
      : bucket_(std::move(location), {.attempts = 2,
                                      .connect_timeout = std::chrono::seconds(5),
                                      .stall_timeout = std::chrono::seconds(10)}) {}

 private:
  static std::string object_of(const std::string& key) { return std::string(kFolder) + "/" + key + ".so"; }

  Status write(const std::string& key, const std::string& content) const override {
    TRY(bucket_.put(object_of(key), content));
    TRY_ASSIGN(storage::Bucket::Listing listing, bucket_.list(std::string(kFolder) + "/", true));
    std::vector<std::pair<std::string, std::string>> files;
    for (storage::Object& object : listing.objects) {
      if (object.key.ends_with(".so")) files.emplace_back(object.modified, std::move(object.key));
    }
    const std::vector<std::string> old = surplus(std::move(files));
    return old.empty() ? Status() : bucket_.remove(old);
  }

  Result<std::string> read(const std::string& key) const override {
    return bucket_.get(object_of(key), kMaxLibraryBytes);
  }

  storage::Bucket bucket_;
};

}  // namespace

std::unique_ptr<SharedLibraries> SharedLibraries::of(const std::string& config) {
  const auto json = parse_json(config);
  if (!json || !json->is_object() || !json->contains("checkpoint_storage")) return nullptr;
  const Json& storage = (*json)["checkpoint_storage"];
  if (!storage.is_object()) return nullptr;
  if (text_of(storage, "type") == "shared_fs" && !text_of(storage, "host_path").empty())
    return std::make_unique<InDirectory>(storage);
  if (!storage::is_bucket(storage)) return nullptr;
  auto location = storage::read_location(storage);
  // Without keys in the configuration, these are the environment's.
  if (!location || location->access_key.empty() || location->access_key != text_of(storage, "access_key") ||
      location->secret_key != text_of(storage, "secret_key"))
    return nullptr;
  return std::make_unique<InBucket>(std::move(*location));
}

Status SharedLibraries::put(const std::string& key, const std::string& library) const {
  TRY_ASSIGN(const std::string content, read_file(library, kMaxLibraryBytes));
  return write(key, content);
}

Result<std::string> SharedLibraries::get(const std::string& key, const std::string& digest) const {
  TRY_ASSIGN(std::string content, read(key));
  if (sha256_hex(content) == digest) return content;
  return fail(Code::kDataLoss, "the library in the checkpoint storage has another digest than the built one");
}

}  // namespace det::agent
