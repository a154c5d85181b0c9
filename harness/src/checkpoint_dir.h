// Owns checkpoints as directories: written whole or not at all, checked before they are believed. Knows nothing of
// what is in the files. Standard library only.
//
//   <storage>/<uuid>.partial/   while it is written; never read
//   <storage>/<uuid>/           complete: manifest.json holds size and SHA-256 of every other file
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace det {

/// Writes one checkpoint. Unless commit() succeeds nothing appears in the storage, and what was written goes with this
/// object.
class CheckpointWriter {
 public:
  static Result<CheckpointWriter> create(const std::string& storage, const std::string& uuid);
  CheckpointWriter(CheckpointWriter&& other) noexcept;
  ~CheckpointWriter();

  /// Where to put files; commit() finds them by itself.
  const std::string& directory() const { return partial_; }
  Status write(const std::string& path, std::string_view content);
  /// Copies the `files` of `directory` below `path`. Those that are gone by now are left out.
  Status copy(const std::string& directory, const std::vector<std::string>& files, const std::string& path);
  /// Makes everything durable, then visible. Path → bytes of all files.
  Result<std::map<std::string, std::int64_t>> commit();

 private:
  CheckpointWriter(std::string partial, std::string complete)
      : partial_(std::move(partial)), complete_(std::move(complete)) {}
  std::string partial_, complete_;
};

/// Relative paths of the regular files below `directory`, sorted: what to keep of a model directory. Without hidden
/// names, links, special files and whatever lies below `except`.
std::vector<std::string> list_files(const std::string& directory, const std::string& except);

/// Every file of the manifest is there with its size and digest. kDataLoss naming the first that is not; kNotFound
/// when there is no such directory or no manifest in it.
Status verify_checkpoint(const std::string& directory);

/// The newest complete checkpoint of a storage that verifies: most steps first, then the latest. Damaged ones are
/// skipped, each with a warning on stderr. Nothing when there is none.
std::optional<std::string> find_latest_checkpoint(const std::string& storage);

}  // namespace det
