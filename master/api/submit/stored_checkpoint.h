// Files of checkpoints in the storages that experiments use. The only access of the API to them; removal of
// whole checkpoints is in master/gc.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/storage/bucket.h"
#include "common/storage/checkpoint_files.h"
#include "common/storage/policy.h"

namespace det::api {

/// An open file of a checkpoint. `read` returns the next bytes: at least one, at most `left`.
struct OpenFile {
  std::int64_t size = 0, changed = 0;  ///< size in bytes; modification time in seconds since 1970, 0: unknown
  std::function<Result<std::string>(std::int64_t left)> read;
};

/// The files of one checkpoint, in a directory or a bucket that the policy allows. Calls block.
class StoredCheckpoint {
 public:
  /// Opens the checkpoint. `config` is the experiment's resolved configuration (JSON). Errors:
  /// kInvalidArgument (no UUID), kFailedPrecondition (the storage is not allowed, or not reachable from the
  /// master).
  static Result<StoredCheckpoint> open(const storage::StoragePolicy& policy, const std::string& config,
                                       const CheckpointId& id);
  /// Opens a file of `size` bytes; a directory's file has its own size. Errors: those of
  /// storage::CheckpointFiles::file and storage::Bucket.
  Result<OpenFile> file(const std::string& name, std::int64_t size) const;
  /// Deletes files. Idempotent. All names are checked before the first file is deleted.
  Status remove(const std::vector<std::string>& names) const;

 private:
  StoredCheckpoint(CheckpointId id, std::optional<storage::CheckpointFiles> files,
                   std::optional<storage::Bucket> bucket)
      : id_(std::move(id)), files_(std::move(files)), bucket_(std::move(bucket)) {}
  CheckpointId id_;
  // Exactly one is set.
  std::optional<storage::CheckpointFiles> files_;
  std::optional<storage::Bucket> bucket_;
};

/// Tests a storage that is a bucket: writes, reads and removes an object. Other storages are not tested.
/// Blocks for seconds. Errors: kFailedPrecondition (not allowed), kInvalidArgument, those of the store.
Status check_bucket(const storage::StoragePolicy& policy, const Json& storage);

}  // namespace det::api
