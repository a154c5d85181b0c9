// File system helpers: bounded reads, atomic writes, directory trees, locks. Paths come from operators and
// from our own code; untrusted paths go through common/archive/archive.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace det {

/// Converts errno to an error with the message `<what>: <strerror>`. Codes: kNotFound, kPermissionDenied,
/// kAlreadyExists, kResourceExhausted (disk full, out of descriptors or memory), else kUnavailable.
tl::unexpected<Error> fail_errno(const std::string& what);

/// Reads a whole file; pipes and /proc files too. Errors: kResourceExhausted (larger than `limit` bytes),
/// fail_errno.
Result<std::string> read_file(const std::string& path, std::int64_t limit = 64 << 20);
/// Replaces a file atomically and durably: temporary file beside it, fsync, rename, fsync of the directory.
/// After success the content survives a power failure; after a failure or crash the old file is intact.
Status write_file_atomic(const std::string& path, std::string_view content, mode_t mode = 0644);
/// Replaces a file atomically without fsync: readers see the old or the new content, never a mix. The content
/// may be lost on power failure; for state that is meaningless after a reboot.
Status replace_file(const std::string& path, std::string_view content, mode_t mode = 0644);
/// Writes all bytes; retries short writes and EINTR.
Status write_all(int fd, std::string_view bytes);
/// Calls fsync on a directory, which makes renames inside it durable.
Status sync_directory(const std::string& path);

/// Creates a directory and its parents. Idempotent. Errors: kNotFound if a parent is not a directory.
Status make_directories(const std::string& path, mode_t mode = 0755);
/// Removes a file or a directory tree, also one with directories that their owner may not write. Symbolic
/// links are removed, not followed. Idempotent.
Status remove_tree(const std::string& path);
/// Returns the path of a directory that is absent or empty: `path` without slashes at its end, or the real
/// path of an existing one. Errors: kFailedPrecondition (neither).
Result<std::string> vacant_directory(const std::string& path);
/// True if the path exists; a dangling symbolic link counts.
bool path_exists(const std::string& path);
/// Bytes that an unprivileged user may still write on the file system of `path`.
Result<std::int64_t> free_space(const std::string& path);
/// Absolute path of the running program, with symbolic links resolved; "" on failure.
std::string program_path();

/// A new directory (mode 0700) that is removed with its content by the destructor.
class TemporaryDirectory {
 public:
  /// Creates `<parent>/<prefix>-XXXXXX`. `parent` "" means $TMPDIR, else /tmp.
  static Result<TemporaryDirectory> create(const std::string& prefix = "det", const std::string& parent = "");
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }
  /// Releases ownership: the directory is not removed.
  std::string release() { return std::exchange(path_, {}); }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// An exclusive advisory lock (flock) on a file. Held until the object is destroyed or the process ends. The
/// file itself is not removed.
class FileLock {
 public:
  /// Acquires the lock without blocking; creates the file (mode 0600) if absent. Errors: kFailedPrecondition
  /// (held by another process).
  static Result<FileLock> try_lock(const std::string& path);
  /// Acquires the lock; blocks until it is free.
  static Result<FileLock> lock(const std::string& path);
  int fd() const { return fd_.get(); }

 private:
  static Result<FileLock> take(const std::string& path, int operation);
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace det
