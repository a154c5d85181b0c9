// Built trials in the checkpoint storage of their experiment, "det-builds/<key>.so", so that one agent of a
// cluster compiles them. Users can write to the storage: a library is used only if it has the digest that the
// master has recorded.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/storage/root.h"

namespace det::agent {

/// Calls block, for a remote storage for seconds.
class SharedLibraries {
 public:
  /// Limit on the number of libraries in a storage. Older ones are removed.
  static constexpr std::size_t kMaxLibraries = 64;

  /// `config`: the experiment's configuration as JSON. Returns nothing unless its checkpoint storage is a
  /// directory that agents share (shared_fs). Buckets are not used: the agent has no credentials for them.
  static std::optional<SharedLibraries> of(const std::string& config);

  /// Stores the library of a file. Errors: kFailedPrecondition (the storage directory does not exist yet),
  /// those of the storage.
  Status put(const std::string& key, const std::string& library) const;
  /// Returns a library. Errors: kNotFound; kDataLoss (another digest); those of the storage.
  Result<std::string> get(const std::string& key, const std::string& digest) const;

 private:
  SharedLibraries() = default;
  Result<storage::PinnedRoot> directory(bool create) const;
  Result<std::string> read(const std::string& key) const;

  storage::Root root_;
};

}  // namespace det::agent
