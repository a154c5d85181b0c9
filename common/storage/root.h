// Storage directories as administrators name them, and access below them that follows no link of a user.
#pragma once

#include <string>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace det::storage {

/// A storage directory. Symbolic links in `base` are followed, since an administrator chose it. `below` comes
/// from a user's configuration: relative, normalized, "" for the base itself; links in it are refused.
struct Root {
  std::string base, below = {};
  /// Returns the whole path, for messages.
  std::string path() const { return below.empty() ? base : base + "/" + below; }
  auto operator<=>(const Root&) const = default;
};

/// A storage directory that stays the same one while it is open, whatever happens to its path. Thread-safe.
class PinnedRoot {
 public:
  /// Opens the directory. Errors: kFailedPrecondition (absent, unreadable, or reached by a symbolic link).
  static Result<PinnedRoot> open(const Root& root);
  /// Opens a path below the root. It may not contain "..", begin with a slash, or pass a symbolic link or a
  /// magic link of /proc. Errors: kNotFound; kFailedPrecondition (a link, or outside the root); those of
  /// errno.
  Result<UniqueFd> open_beneath(const std::string& path, int flags) const;
  /// Opens a directory below the root. Errors: as open_beneath.
  Result<PinnedRoot> directory(const std::string& path) const;
  /// Returns a path of this process that leads to the open directory. Valid as long as this object.
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }
  int fd() const { return fd_.get(); }

 private:
  explicit PinnedRoot(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace det::storage
