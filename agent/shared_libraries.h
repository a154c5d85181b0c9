// Built trials in the checkpoint storage of their experiment, "det-builds/<key>.so", so that one agent of a
// cluster compiles them. Users can write to the storage: a library is used only if it has the digest that the
// master has recorded.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "common/base/result.h"

namespace det::agent {

/// Calls block, for a remote storage for seconds.
class SharedLibraries {
 public:
  /// Limit on the number of libraries in a storage. Older ones are removed.
  static constexpr std::size_t kMaxLibraries = 64;

  /// `config`: the experiment's configuration as JSON. Its checkpoint storage must be a directory that agents
  /// share (shared_fs) or a bucket whose keys are in the configuration: the agent's own credentials sign no
  /// request to a bucket that a user names. Returns null for other storages.
  static std::unique_ptr<SharedLibraries> of(const std::string& config);
  virtual ~SharedLibraries() = default;

  /// Stores the library of a file, in place of one with other content. Errors: kFailedPrecondition (the
  /// storage directory does not exist yet), those of the storage.
  Status put(const std::string& key, const std::string& library) const;
  /// Returns a library. Errors: kNotFound; kDataLoss (another digest); those of the storage.
  Result<std::string> get(const std::string& key, const std::string& digest) const;

 private:
  /// Writes the library of a key and removes the oldest ones beyond kMaxLibraries.
  virtual Status write(const std::string& key, const std::string& content) const = 0;
  virtual Result<std::string> read(const std::string& key) const = 0;
};

}  // namespace det::agent
