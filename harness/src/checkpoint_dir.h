// Owns checkpoints as directories: written whole or not at all, checked before they are believed. Knows
// nothing of what is in the files. Standard library only.
//
//   <storage>/<uuid>.partial/   while it is written, locked (flock) by its writer; never read
//   <storage>/<uuid>/           complete: manifest.json holds size and digest of every other file
//
// The digest of a small file is its SHA-256. That of the large one is a CRC-64, which the writer computes
// while the bytes go to the disk: the manifest guards against damage, not against an enemy (who would rewrite
// it too), and SHA-256 is slower than a good disk.
//
// Of a storage that is a bucket the directory is where files wait: a checkpoint is written here and then
// sent, or fetched and then read (storage/bucket_checkpoints.h says how it lies there).
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

#include "base/fd.h"
#include "base/json.h"
#include "base/result.h"

namespace det::storage {
class Bucket;
}

namespace det {

/// Whose checkpoint it is, for the manifest: by it the cluster finds those that were never reported. Without
/// a cluster none.
struct CheckpointOwner {
  std::string cluster;
  std::int64_t trial = 0;
  std::int32_t run = 0;
};

/// Writes one checkpoint. Unless commit() succeeds nothing appears in the storage, and what was written goes
/// with this object.
class CheckpointWriter {
 public:
  /// Removes what dead writers left in the storage, too. With a bucket commit() makes the checkpoint visible
  /// there; what is left in the directory then is a copy.
  static Result<CheckpointWriter> create(const std::string& storage, const std::string& uuid,
                                         CheckpointOwner owner = {},
                                         std::shared_ptr<const storage::Bucket> bucket = nullptr);
  CheckpointWriter(CheckpointWriter&& other) noexcept;
  ~CheckpointWriter();

  /// Where to put files; commit() finds them by itself.
  const std::string& directory() const { return partial_; }
  Status write(const std::string& path, std::string_view content);
  /// Copies the `files` of `directory` below `path`. Those that are gone by now are left out.
  Status copy(const std::string& directory, const std::vector<std::string>& files, const std::string& path);
  /// The file at `path` is durable already and has this CRC-64: commit() does not read it unless it was
  /// changed since.
  void note(const std::string& path, std::uint64_t crc64);
  /// A file that another process has put into the bucket: what digest_entry() said there. No copy is left
  /// here then.
  void note_sent(const std::string& path, const Json& entry) { sent_[path] = entry; }
  /// Makes everything durable, then visible. Path → bytes of all files.
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
  struct Noted {
    std::uint64_t crc64;
    std::int64_t size, changed_ns;
  };
  std::map<std::string, Noted> noted_;
  std::map<std::string, Json> sent_;
  std::shared_ptr<const storage::Bucket> bucket_;
};

/// What a manifest says of a file: size and SHA-256.
Result<Json> digest_entry(const std::string& path);

/// Relative paths of the regular files below `directory`, sorted: what to keep of a model directory. Without
/// hidden names, links, special files and whatever lies below `except`.
std::vector<std::string> list_files(const std::string& directory, const std::string& except);

/// Removes the partial checkpoints of a storage whose writers are dead: nobody has them locked, and nothing
/// in them has changed for ten minutes before `now_ns` (nanoseconds since 1970, by the clock that stamps the
/// storage's files). The wait is for storages whose locks end at each machine; where there are no locks at
/// all it is a day.
void remove_dead_partials(const std::string& storage, std::int64_t now_ns);

/// Every file of the manifest is there with its size and digest. kDataLoss naming the first that is not;
/// kNotFound when there is no such directory or no manifest in it.
Status verify_checkpoint(const std::string& directory);

/// The newest complete checkpoint of a storage that verifies: most steps first, then the latest. Damaged ones
/// are skipped, each with a warning on stderr. Nothing when there is none. Of a bucket it is brought here.
std::optional<std::string> find_latest_checkpoint(const std::string& storage,
                                                  const storage::Bucket* bucket = nullptr);

/// The directory of a checkpoint: `<storage>/<uuid>`. Of a bucket it is brought here unless it is here
/// already; processes of one machine wait for the one that does it. Errors are those of storage::fetch().
Result<std::string> bring_checkpoint(const std::string& storage, const std::string& uuid,
                                     const storage::Bucket* bucket);

}  // namespace det
