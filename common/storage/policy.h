// Storages that experiments may use: directories and buckets that administrators named. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/base/shared.h"
#include "common/storage/location.h"
#include "common/storage/root.h"

namespace det::storage {

/// A storage that an administrator defined.
struct NamedStorage {
  std::string name;
  /// Type and location as in `checkpoint_storage`, without keys.
  Json location;
  /// Keys of a bucket; "": those of the environment of the process that uses it.
  std::string access_key, secret_key;
  /// Each workspace has a directory or prefix `workspace-ID` of its own, reachable by the storage's name
  /// only.
  bool per_workspace = false;
};

/// What `checkpoint_storage` of an experiment may name. A default-constructed policy allows nothing. In all
/// calls `storage` is such a section, resolved.
struct StoragePolicy {
  Json own;                              ///< the master's own `checkpoint_storage`; allowed
  std::string data_dir;                  ///< of the master; nothing in it is allowed but `own`
  std::vector<std::string> directories;  ///< allowed with everything below; absolute
  std::vector<Location> buckets;         ///< allowed with everything below their prefix
  std::vector<NamedStorage> named;       ///< sorted by name

  /// Checks that the storage is allowed. Errors: kFailedPrecondition with what is allowed.
  Status check(const Json& storage) const;
  /// Returns the directory of a storage that is not a bucket. Errors: as check.
  Result<Root> root_of(const Json& storage) const;
  /// Returns the bucket of a storage of type s3 with the keys to use: of the section, of the named storage,
  /// of the environment. Errors: as check; kInvalidArgument for an invalid section.
  Result<Location> bucket_of(const Json& storage) const;
  /// Returns the section that stands for a named storage in a workspace, with `name` and without keys.
  /// Errors: kNotFound with the names that exist.
  Result<Json> section_of(const std::string& name, std::int64_t workspace) const;
  /// Returns the section for a process that trains: the keys are filled in, `name` is left out.
  Json for_process(Json storage) const;
  /// Returns what is allowed, for messages.
  std::string allowed() const;

 private:
  const NamedStorage* find(const std::string& name) const;
  /// Returns the named storage that the section names or lies in; null without one.
  const NamedStorage* storage_of(const Json& storage) const;
};

/// The policy in force. Thread-safe.
class Storages {
 public:
  explicit Storages(StoragePolicy policy = {}) { set(std::move(policy)); }
  std::shared_ptr<const StoragePolicy> get() const { return policy_.get(); }
  void set(StoragePolicy policy) { policy_.set(std::make_shared<const StoragePolicy>(std::move(policy))); }

 private:
  Shared<StoragePolicy> policy_;
};

/// Returns the directory of a storage, normalized; "" for a bucket and for an incomplete section.
std::string directory_of(const Json& storage);

/// Parses s3://BUCKET[/PREFIX] or http[s]://HOST[:PORT]/BUCKET[/PREFIX]. Errors: kInvalidArgument.
Result<Location> parse_bucket(const std::string& text);

}  // namespace det::storage
