// Checkpoint directories: created atomically, and verified before use. Independent of the files' contents.
// Standard library only.
//
//   <storage>/<uuid>.partial/   while it is written, locked (flock) by its writer; never read
//   <storage>/<uuid>/           complete: manifest.json has size and digest of every other file
//
// Digests are SHA-256, except for the large file, which has a CRC-64 that the writer computes while the bytes
// go to the disk. The manifest protects against damage, not against an adversary (it can be rewritten, too),
// and SHA-256 is slower than a good disk.
//
// With a bucket as storage, the directory is a staging area: checkpoints are written here and then uploaded,
// or downloaded and then read. common/storage/bucket_checkpoints.h describes the layout in the bucket.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/fd.h"
#include "common/base/json.h"
#include "common/base/result.h"

namespace det::storage {
class Bucket;
}

namespace det {

/// Owner of a checkpoint, for its manifest. The cluster uses it to find checkpoints that were never reported.
/// Empty without a cluster.
struct CheckpointOwner {
  std::string cluster;
  std::int64_t trial = 0;
  std::int32_t run = 0;
};

/// Writes one checkpoint. Unless commit() succeeds, nothing appears in the storage, and the destructor
/// removes the files written. Used by one thread.
class CheckpointWriter {
 public:
  /// Creates and locks the partial directory, and removes abandoned ones of other writers. With a bucket,
  /// commit() makes the checkpoint visible there, and the remaining directory is a local copy.
  static Result<CheckpointWriter> create(const std::string& storage, const std::string& uuid,
                                         CheckpointOwner owner = {},
                                         std::shared_ptr<const storage::Bucket> bucket = nullptr);
  CheckpointWriter(CheckpointWriter&& other) noexcept;
  /// Removes the files unless commit() succeeded.
  ~CheckpointWriter();

  /// Directory for the checkpoint's files. commit() includes all files in it.
  const std::string& directory() const { return partial_; }
  /// Creates the file `path` with this content.
  Status write(const std::string& path, std::string_view content);
  /// Copies the `files` of `directory` below `path`. Files that no longer exist are skipped.
  Status copy(const std::string& directory, const std::vector<std::string>& files, const std::string& path);
  /// Declares that the file at `path` is durable and has this CRC-64. commit() then does not read it, unless
  /// it has changed since.
  void note(const std::string& path, std::uint64_t crc64);
  /// Declares a file that another process has uploaded to the bucket, with its digest_entry(). No local copy
  /// of the checkpoint is kept then.
  void note_sent(const std::string& path, const Json& entry) { sent_[path] = entry; }
  /// Makes the files durable, then the checkpoint visible. Returns path → bytes of all files. Call at most
  /// once.
  Result<std::map<std::string, std::int64_t>> commit();

 private:
  CheckpointWriter(std::string partial, std::string complete, CheckpointOwner owner, UniqueFd lock,
                   std::shared_ptr<const storage::Bucket> bucket)
      : partial_(std::move(partial)),
        complete_(std::move(complete)),
        owner_(std::move(owner)),
        lock_(std::move(lock)),
        bucket_(std::move(bucket)) {}
  Status send(const std::vector<std::string>& files) const;
  std::string uuid() const { return complete_.substr(complete_.rfind('/') + 1); }
  std::string partial_, complete_;
  CheckpointOwner owner_;
  UniqueFd lock_;  ///< of the partial directory
  /// A file with a known CRC-64, and its size and time stamp when that was declared.
  struct Noted {
    std::uint64_t crc64;
    std::int64_t size, changed_ns;
  };
  std::map<std::string, Noted> noted_;
  std::map<std::string, Json> sent_;
  std::shared_ptr<const storage::Bucket> bucket_;
};

/// The manifest's entry of a file: size and SHA-256.
Result<Json> digest_entry(const std::string& path);

/// Relative paths of the regular files below `directory`, sorted, without hidden names, links, special files
/// and everything below `except`. Selects the files of a model directory that checkpoints keep.
std::vector<std::string> list_files(const std::string& directory, const std::string& except);

/// Copies a regular file with its permissions, over an existing one. Errors: kNotFound (`from` is missing),
/// kResourceExhausted when the disk is full, which std::filesystem::copy_file() does not tell from others.
Status copy_file(const std::string& from, const std::string& to);

/// Creates the directory and locks it until the result is closed, so that remove_dead_partials() keeps it.
/// Without support for locks in the file system it is not locked.
Result<UniqueFd> make_locked_directory(const std::string& path);

/// Removes the partial checkpoints of dead writers: those that are not locked and have not changed for ten
/// minutes before `now_ns` (nanoseconds since 1970, by the clock that stamps the storage's files). The delay
/// is for storages with locks that are local to each machine. Without support for locks the delay is a day.
void remove_dead_partials(const std::string& storage, std::int64_t now_ns);

/// Checks that every file of the manifest exists with its size and digest. Reads all files. Errors: kDataLoss
/// naming the first file that does not match; kNotFound when the directory or its manifest is missing.
Status verify_checkpoint(const std::string& directory);

/// Returns the directory of the newest complete checkpoint that verifies: most steps first, then most recent.
/// Damaged ones are skipped with a warning on stderr. nullopt when there is none. With a bucket, the
/// checkpoint is downloaded.
std::optional<std::string> find_latest_checkpoint(const std::string& storage,
                                                  const storage::Bucket* bucket = nullptr);

/// Returns the directory of a checkpoint, `<storage>/<uuid>`. With a bucket it is downloaded unless it is
/// here already; concurrent calls on one machine download it once. Errors: those of storage::fetch().
Result<std::string> bring_checkpoint(const std::string& storage, const std::string& uuid,
                                     const storage::Bucket* bucket);

}  // namespace det
