#include "common/storage/file_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "common/base/files.h"
#include "common/base/secret.h"
#include "common/base/text.h"

namespace det::storage {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 16;

/// Writes and syncs a new file.
Status write_new(int directory, const std::string& name, std::string_view content) {
  const UniqueFd fd(
      ::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) return fail_errno(name);
  while (!content.empty()) {
    const ssize_t count = ::write(fd.get(), content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(name);
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  if (::fsync(fd.get()) != 0) return fail_errno(name);
  return {};
}

/// Appends the files below `directory`; its path in the tree is `prefix`.
Status list_into(const PinnedRoot& directory, const std::string& prefix, int depth, std::size_t limit,
                 std::vector<TreeFile>& out) {
  std::vector<std::string> inner;
  std::error_code error;
  for (fs::directory_iterator walk(directory.path(), error), end; !error && walk != end;
       walk.increment(error)) {
    const std::string name = walk->path().filename().string();
    struct stat status {};
    if (!check_file_name(prefix + name) ||
        ::fstatat(directory.fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISDIR(status.st_mode)) inner.push_back(name);
    if (S_ISREG(status.st_mode) && out.size() < limit)
      out.push_back({prefix + name, status.st_size, status.st_mtime});
  }
  if (error) return fail(Code::kUnavailable, "a directory of the storage: " + error.message());
  std::sort(inner.begin(), inner.end());
  for (const std::string& name : inner) {
    if (depth == kMaxDepth || out.size() >= limit) break;
    // A directory that has vanished or become a link since is skipped.
    const auto below = directory.directory(name);
    if (below) TRY(list_into(*below, prefix + name + "/", depth + 1, limit, out));
  }
  return {};
}

}  // namespace

Result<PinnedRoot> create_directories(const PinnedRoot& root, const std::string& path) {
  TRY(check_file_name(path));
  TRY_ASSIGN(PinnedRoot at, root.directory("."));
  for (const std::string& part : split(path, '/')) {
    if (::mkdirat(at.fd(), part.c_str(), 0755) != 0 && errno != EEXIST) return fail_errno(path);
    TRY_ASSIGN(PinnedRoot below, at.directory(part));
    at = std::move(below);
  }
  return at;
}

Status write_file(const PinnedRoot& directory, const std::string& name, std::string_view content) {
  TRY(check_file_name(name));
  if (name.find('/') != name.npos) return fail(Code::kInvalidArgument, name + ": has a slash");
  const std::string hidden = "." + name + "." + to_hex(random_bytes(8));
  Status done = write_new(directory.fd(), hidden, content);
  if (done && ::renameat(directory.fd(), hidden.c_str(), directory.fd(), name.c_str()) != 0)
    done = fail_errno(name);
  if (!done) ::unlinkat(directory.fd(), hidden.c_str(), 0);
  return done;
}

Result<std::vector<TreeFile>> list_files(const PinnedRoot& directory, std::size_t limit) {
  std::vector<TreeFile> out;
  TRY(list_into(directory, "", 0, limit, out));
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return out;
}

}  // namespace det::storage
