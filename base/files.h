// Owns plain work on files: bounded reads, writes that are whole or absent, trees, locks.
// Paths come from operators and our own code, never from a stranger (see base/archive.h for those).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace det {

/// kNotFound, kPermissionDenied, kResourceExhausted (disk full, too many descriptors), else kUnavailable; the
/// message is `<what>: <strerror>`.
tl::unexpected<Error> fail_errno(const std::string& what);

/// The whole file. kResourceExhausted when it holds more than `limit` bytes. Works for pipes and /proc files
/// too.
Result<std::string> read_file(const std::string& path, std::int64_t limit = 64 << 20);
/// After success the file holds `content` whole, also after a power cut; after failure or a crash the old one
/// is untouched. Temporary file beside it, fsync, rename, fsync of the directory.
Status write_file_atomic(const std::string& path, std::string_view content, mode_t mode = 0644);
/// After success whoever opens the file reads `content` whole; before, the old one. For what means nothing
/// after a power cut, which it need not outlive: saves the fsyncs.
Status replace_file(const std::string& path, std::string_view content, mode_t mode = 0644);
/// All bytes or failure; retries short writes and EINTR.
Status write_all(int fd, std::string_view bytes);
/// fsync of the directory `path`, so that renames inside it last.
Status sync_directory(const std::string& path);

/// With parents; no failure when it is there already.
Status make_directories(const std::string& path, mode_t mode = 0755);
/// The path and all below; follows no symbolic link. No failure when it is absent.
Status remove_tree(const std::string& path);
bool path_exists(const std::string& path);
/// Bytes an ordinary user may still write on the file system of `path`.
Result<std::int64_t> free_space(const std::string& path);
/// The path of the running program, links resolved.
std::string program_path();

/// A new directory (mode 0700), removed with its content at the end of its life. Under $TMPDIR, else /tmp.
class TemporaryDirectory {
 public:
  /// `parent` "" means $TMPDIR, else /tmp.
  static Result<TemporaryDirectory> create(const std::string& prefix = "det", const std::string& parent = "");
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }
  /// Leaves the directory to the caller.
  std::string release() { return std::exchange(path_, {}); }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// An advisory lock (flock) on a file that stays; held for the object's life or the process's, whichever ends
/// first.
class FileLock {
 public:
  /// Makes the file (mode 0600) when absent. kFailedPrecondition when another holder has it.
  static Result<FileLock> try_lock(const std::string& path);
  /// Waits for the lock.
  static Result<FileLock> lock(const std::string& path);
  int fd() const { return fd_.get(); }

 private:
  static Result<FileLock> take(const std::string& path, int operation);
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace det
