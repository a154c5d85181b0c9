// Owns checkpoints as directories: written whole or not at all, checked before they are believed. Knows nothing of
// what is in the files. Standard library only.
//
//   <storage>/<uuid>.partial/   while it is written, locked (flock) by its writer; never read
//   <storage>/<uuid>/           complete: manifest.json holds size and digest of every other file
//
// The digest of a small file is its SHA-256. That of the large one is a CRC-64, which the writer computes while the
// bytes go to the disk: the manifest guards against damage, not against an enemy (who would rewrite it too), and
// SHA-256 is slower than a good disk.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace det {

/// Whose checkpoint it is, for the manifest: by it the cluster finds those that were never reported. Without a cluster none.
struct CheckpointOwner {
  std::string cluster;
  std::int64_t trial = 0;
  std::int32_t run = 0;
};

/// Writes one checkpoint. Unless commit() succeeds nothing appears in the storage, and what was written goes with this
/// object.
class CheckpointWriter {
 public:
  /// Removes what dead writers left in the storage, too.
  static Result<CheckpointWriter> create(const std::string& storage, const std::string& uuid,
                                         CheckpointOwner owner = {});
  CheckpointWriter(CheckpointWriter&& other) noexcept;
  ~CheckpointWriter();

  /// Where to put files; commit() finds them by itself.
  const std::string& directory() const { return partial_; }
  Status write(const std::string& path, std::string_view content);
  /// Copies the `files` of `directory` below `path`. Those that are gone by now are left out.
  Status copy(const std::string& directory, const std::vector<std::string>& files, const std::string& path);
  /// The file at `path` is durable already and has this CRC-64: commit() does not read it unless it was changed since.
  void note(const std::string& path, std::uint64_t crc64);
  /// Makes everything durable, then visible. Path → bytes of all files.
  Result<std::map<std::string, std::int64_t>> commit();

 private:
  CheckpointWriter(std::string partial, std::string complete, CheckpointOwner owner, UniqueFd lock)
      : partial_(std::move(partial)), complete_(std::move(complete)), owner_(std::move(owner)), lock_(std::move(lock)) {}
  std::string partial_, complete_;
  CheckpointOwner owner_;
  UniqueFd lock_;  ///< of the partial directory
  struct Noted {
    std::uint64_t crc64;
    std::int64_t size, changed_ns;
  };
  std::map<std::string, Noted> noted_;
};

/// Relative paths of the regular files below `directory`, sorted: what to keep of a model directory. Without hidden
/// names, links, special files and whatever lies below `except`.
std::vector<std::string> list_files(const std::string& directory, const std::string& except);

/// Removes the partial checkpoints of a storage whose writers are dead: nobody has them locked, and nothing in them has
/// changed for ten minutes before `now_ns` (nanoseconds since 1970, by the clock that stamps the storage's files). The
/// wait is for storages whose locks end at each machine; where there are no locks at all it is a day.
void remove_dead_partials(const std::string& storage, std::int64_t now_ns);

/// Every file of the manifest is there with its size and digest. kDataLoss naming the first that is not; kNotFound
/// when there is no such directory or no manifest in it.
Status verify_checkpoint(const std::string& directory);

/// The newest complete checkpoint of a storage that verifies: most steps first, then the latest. Damaged ones are
/// skipped, each with a warning on stderr. Nothing when there is none.
std::optional<std::string> find_latest_checkpoint(const std::string& storage);

}  // namespace det
