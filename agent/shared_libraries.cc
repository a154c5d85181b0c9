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

namespace det::agent {
namespace {

constexpr const char* kFolder = "det-builds";
/// Of a trial with debug information and a statically linked library.
constexpr std::int64_t kMaxLibraryBytes = 256LL << 20;

std::string text_of(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

/// Removes the libraries of a directory that were written first, beyond kMaxLibraries.
void remove_oldest(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".so") files.emplace_back(entry.last_write_time(error), entry.path());
  }
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i + SharedLibraries::kMaxLibraries < files.size(); ++i)
    fs::remove(files[i].second, error);
}

}  // namespace

std::optional<SharedLibraries> SharedLibraries::of(const std::string& config) {
  const auto json = parse_json(config);
  if (!json || !json->is_object() || !json->contains("checkpoint_storage")) return std::nullopt;
  const Json& storage = (*json)["checkpoint_storage"];
  if (!storage.is_object()) return std::nullopt;
  SharedLibraries shared;
  if (text_of(storage, "type") != "shared_fs" || text_of(storage, "host_path").empty()) return std::nullopt;
  shared.root_.base = text_of(storage, "host_path");
  const std::filesystem::path below = text_of(storage, "storage_path");
  // An absolute path lies below host_path, as the master has checked.
  shared.root_.below = below.is_absolute() ? below.lexically_relative(shared.root_.base).lexically_normal()
                                           : below.lexically_normal();
  if (shared.root_.below == ".") shared.root_.below.clear();
  return shared;
}

Result<storage::PinnedRoot> SharedLibraries::directory(bool create) const {
  TRY_ASSIGN(const storage::PinnedRoot root, storage::PinnedRoot::open(root_));
  auto found = root.directory(kFolder);
  if (found || !create || found.error().code != Code::kNotFound) return found;
  if (::mkdirat(root.fd(), kFolder, 0755) != 0 && errno != EEXIST) return fail_errno(root_.path());
  return root.directory(kFolder);
}

Status SharedLibraries::put(const std::string& key, const std::string& library) const {
  TRY_ASSIGN(const std::string content, read_file(library, kMaxLibraryBytes));
  TRY_ASSIGN(const storage::PinnedRoot folder, directory(true));
  const std::string path = folder.path() + "/" + key + ".so";
  // One of a user is replaced: its digest differs from the recorded one.
  if (auto known = read(key); known && *known == content) return {};
  TRY(replace_file(path, content, 0644));
  remove_oldest(folder.path());
  return {};
}

Result<std::string> SharedLibraries::read(const std::string& key) const {
  TRY_ASSIGN(const storage::PinnedRoot folder, directory(false));
  TRY_ASSIGN(const UniqueFd file, folder.open_beneath(key + ".so", O_RDONLY | O_NONBLOCK));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return fail(Code::kDataLoss, root_.path() + "/" + kFolder + "/" + key + ".so is not a plain file");
  return read_file("/proc/self/fd/" + std::to_string(file.get()), kMaxLibraryBytes);
}

Result<std::string> SharedLibraries::get(const std::string& key, const std::string& digest) const {
  TRY_ASSIGN(std::string content, read(key));
  if (sha256_hex(content) == digest) return content;
  return fail(Code::kDataLoss, "the library in the checkpoint storage has another digest than the built one");
}

}  // namespace det::agent
