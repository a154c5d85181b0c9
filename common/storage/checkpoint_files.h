// Files of one checkpoint in a storage directory. The master and the agents read and delete checkpoint files
// only through this class, since users and trials can write to the directory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/storage/root.h"

namespace det::storage {

/// Parses the id of a checkpoint: a UUID of lower-case hexadecimal digits (8-4-4-4-12). Errors:
/// kInvalidArgument.
Result<CheckpointId> parse_checkpoint_id(std::string_view text);

/// Limit of a file's name in a checkpoint, in bytes.
inline constexpr std::size_t kMaxFileNameBytes = 1024;
/// Checks the name of a checkpoint's file or, with a slash at its end, directory: relative UTF-8 text without
/// empty, "." and ".." parts, control characters and backslashes. Errors: kInvalidArgument naming the file.
Status check_file_name(std::string_view name);

/// An open regular file of a checkpoint.
class StoredFile {
 public:
  std::int64_t size() const { return size_; }
  /// Modification time in seconds since 1970.
  std::int64_t changed() const { return changed_; }
  /// Reads the next bytes: at least one, at most `limit`. Errors: kDataLoss (the file has ended).
  Result<std::string> read(std::int64_t limit) const;

 private:
  friend class CheckpointFiles;
  StoredFile(std::string name, UniqueFd fd, std::int64_t size, std::int64_t changed)
      : name_(std::move(name)),
        fd_(std::make_shared<UniqueFd>(std::move(fd))),
        size_(size),
        changed_(changed) {}
  std::string name_;
  std::shared_ptr<UniqueFd> fd_;  ///< copies share the position
  std::int64_t size_, changed_;
};

/// The directory of one checkpoint, held open. Names are those of check_file_name(); no call leaves the
/// directory or follows a link. Calls block.
class CheckpointFiles {
 public:
  /// Opens `<root>/<id>`. Errors: kInvalidArgument (no UUID), kNotFound, kFailedPrecondition (a link in place
  /// of the directory), those of errno.
  static Result<CheckpointFiles> open(const PinnedRoot& root, const CheckpointId& id);
  /// The files of another directory, which is open.
  explicit CheckpointFiles(PinnedRoot directory) : directory_(std::move(directory)) {}
  /// Opens a file. Errors: kInvalidArgument (name), kNotFound, kFailedPrecondition (a link), kDataLoss (no
  /// regular file).
  Result<StoredFile> file(const std::string& name) const;
  /// Deletes a file; a link itself, not its target. Idempotent. Errors: kInvalidArgument (name).
  Status remove(const std::string& name) const;

 private:
  PinnedRoot directory_;
};

}  // namespace det::storage
