#include "common/base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "common/base/process.h"
#include "common/base/secret.h"

namespace det {
namespace {

namespace fs = std::filesystem;

Code code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Code::kResourceExhausted;
    case EEXIST:
      return Code::kAlreadyExists;
    default:
      return Code::kUnavailable;
  }
}

tl::unexpected<Error> fail_with(const std::string& what, int error) {
  return fail(code_of(error), what + ": " + std::strerror(error));
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// Durability of a written file: it survives a process crash, or a power failure too.
enum class Lasts { kCrash, kPowerCut };

/// Writes a new file. The caller removes it on failure.
Status write_new_file(const std::string& path, std::string_view content, mode_t mode, Lasts lasts) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(path);
  TRY(write_all(fd.get(), content));
  // open() applies the umask; fchmod sets the exact mode.
  if (::fchmod(fd.get(), mode) != 0 || (lasts == Lasts::kPowerCut && ::fsync(fd.get()) != 0))
    return fail_errno(path);
  // Network file systems report some write errors only at close.
  if (::close(fd.release()) != 0) return fail_errno(path);
  return {};
}

Status replace(const std::string& path, std::string_view content, mode_t mode, Lasts lasts) {
  // A random suffix: concurrent writers of the same file must not share a temporary.
  const std::string temporary = path + ".tmp-" + to_hex(random_bytes(6));
  Status written = write_new_file(temporary, content, mode, lasts);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) written = fail_errno(path);
  // A failure leaves neither a temporary file nor a changed target.
  if (!written) ::unlink(temporary.c_str());
  return written;
}

/// Makes the directories of a tree writable and searchable for their owner, where this process may. Symbolic
/// links are not followed.
void make_removable(int parent, const std::string& name) {
  const UniqueFd directory(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!directory || ::fstat(directory.get(), &info) != 0) return;
  // fchmod() refuses a descriptor with O_PATH; another one needs a permission that may be missing.
  const std::string self = "/proc/self/fd/" + std::to_string(directory.get());
  (void)::chmod(self.c_str(), (info.st_mode & 07777) | S_IRWXU);
  std::error_code error;
  for (fs::directory_iterator it(self, error), end; !error && it != end; it.increment(error)) {
    std::error_code unknown;
    if (it->symlink_status(unknown).type() == fs::file_type::directory)
      make_removable(directory.get(), it->path().filename().string());
  }
}

}  // namespace

tl::unexpected<Error> fail_errno(const std::string& what) { return fail_with(what, errno); }

Result<std::string> read_file(const std::string& path, std::int64_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(path);
  std::string content;
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got == 0) return content;
    if (got < 0) {
      if (errno == EINTR) continue;
      return fail_errno(path);
    }
    // The limit is checked while reading: st_size is 0 for pipes and /proc files.
    content.append(buffer, static_cast<std::size_t>(got));
    if (static_cast<std::int64_t>(content.size()) > limit) {
      return fail(Code::kResourceExhausted, path + ": larger than " + std::to_string(limit) + " bytes");
    }
  }
}

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return fail_errno("write");
    }
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Status sync_directory(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return fail_errno(path);
  return {};
}

Status write_file_atomic(const std::string& path, std::string_view content, mode_t mode) {
  TRY(replace(path, content, mode, Lasts::kPowerCut));
  return sync_directory(parent_of(path));
}

Status replace_file(const std::string& path, std::string_view content, mode_t mode) {
  return replace(path, content, mode, Lasts::kCrash);
}

Status make_directories(const std::string& path, mode_t mode) {
  if (path.empty()) return {};
  if (::mkdir(path.c_str(), mode) == 0) return {};
  if (errno == EEXIST) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return fail_errno(path);
    return S_ISDIR(info.st_mode) ? Status{} : fail_with(path, ENOTDIR);
  }
  if (errno != ENOENT) return fail_errno(path);
  TRY(make_directories(fs::path(path).parent_path().string(), mode));
  // Another process may create it concurrently.
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return fail_errno(path);
  return {};
}

Status remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error.value() == EACCES) {
    make_removable(AT_FDCWD, path);
    fs::remove_all(path, error);
  }
  if (error) return fail_with(path, error.value());
  return {};
}

Result<std::string> vacant_directory(const std::string& path) {
  std::string target = path;
  while (target.size() > 1 && target.ends_with('/')) target.pop_back();
  if (!path_exists(target)) return target;
  std::error_code error;
  if (!fs::is_directory(target, error)) return fail(Code::kFailedPrecondition, target + " is no directory");
  if (!fs::is_empty(target, error) || error) return fail(Code::kFailedPrecondition, target + " is not empty");
  // A rename to the path must replace the directory, not a symbolic link to it.
  return fs::canonical(target, error).string();
}

bool path_exists(const std::string& path) {
  // lstat: a dangling symbolic link still occupies its name.
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

Result<std::int64_t> free_space(const std::string& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return fail_errno(path);
  return static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
}

std::string program_path() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

Result<TemporaryDirectory> TemporaryDirectory::create(const std::string& prefix, const std::string& parent) {
  std::string path = parent;
  if (path.empty()) {
    path = environment_variable("TMPDIR");
    if (path.empty()) path = "/tmp";
  }
  path += "/" + prefix + "-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return fail_errno(path);
  return TemporaryDirectory(std::move(path));
}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
  if (!path_.empty()) (void)remove_tree(path_);
}

Result<FileLock> FileLock::take(const std::string& path, int operation) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return fail_errno(path);
  while (::flock(fd.get(), operation) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK)
      return fail(Code::kFailedPrecondition, path + ": another process holds the lock");
    return fail_errno(path);
  }
  return FileLock(std::move(fd));
}

Result<FileLock> FileLock::try_lock(const std::string& path) { return take(path, LOCK_EX | LOCK_NB); }
Result<FileLock> FileLock::lock(const std::string& path) { return take(path, LOCK_EX); }

}  // namespace det
