// Built trials in the checkpoint storage of their experiment, "det-builds/<key>.so", so that one agent of a
// cluster compiles them. Users can write to the storage: a library is used only if it has the digest that the
// master has recorded.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"
#include "common/storage/bucket.h"
#include "common/storage/root.h"

namespace det::agent {

/// Calls block, for a remote storage for seconds. Not thread-safe.
class SharedLibraries {
 public:
  /// Limit on the number of libraries in a storage. Older ones are removed.
  static constexpr std::size_t kMaxLibraries = 64;

  /// `config`: the experiment's configuration as JSON. Returns nothing if it names no storage that agents
  /// share (shared_fs and s3).
  static std::optional<SharedLibraries> of(const std::string& config);

  /// Stores a library, unless the storage has one under its key. Errors: those of the storage.
  Status put(const std::string& key, const std::string& path) const;
  /// Returns a library. Errors: kNotFound; kDataLoss (another digest); those of the storage.
  Result<std::string> get(const std::string& key, const std::string& digest) const;

 private:
  SharedLibraries() = default;
  Result<storage::PinnedRoot> directory(bool create) const;
  Result<std::string> read(const std::string& key) const;
  Status put_file(const std::string& key, const std::string& content) const;
  Status put_object(const std::string& key, const std::string& content) const;

  storage::Root root_;                       ///< base "" for a bucket
  std::shared_ptr<storage::Bucket> bucket_;  ///< null for a directory
};

}  // namespace det::agent
