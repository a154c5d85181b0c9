#include "master/api/submit/stored_checkpoint.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

namespace det::api {
namespace {

/// Short timeouts: a user waits for the result.
constexpr storage::BucketOptions kShortTimeouts{
    .attempts = 2, .connect_timeout = std::chrono::seconds(5), .stall_timeout = std::chrono::seconds(10)};

Result<storage::CheckpointFiles> open_directory(const storage::Root& root, const CheckpointId& id) {
  TRY_ASSIGN(const storage::PinnedRoot pinned, storage::PinnedRoot::open(root));
  auto files = storage::CheckpointFiles::open(pinned, id);
  if (!files && files.error().code != Code::kInvalidArgument)
    return fail(Code::kFailedPrecondition, "the master cannot read the checkpoint's directory in " +
                                               root.path() + ": " + files.error().message +
                                               "; download it where the storage is mounted");
  return files;
}

}  // namespace

Result<StoredCheckpoint> StoredCheckpoint::open(const storage::StoragePolicy& policy,
                                                const std::string& config, const CheckpointId& id) {
  TRY(storage::parse_checkpoint_id(id.value));
  TRY_ASSIGN(const Json json, parse_json(config, {.bytes = 16 << 20, .depth = 64}));
  const Json* storage = json.is_object() ? find_path(json, "checkpoint_storage") : nullptr;
  if (storage == nullptr || !storage->is_object())
    return fail(Code::kFailedPrecondition, "the checkpoint's storage is not known");
  if (storage::is_bucket(*storage)) {
    TRY_ASSIGN(const storage::Location location, policy.bucket_of(*storage));
    return StoredCheckpoint(id, std::nullopt, storage::Bucket(location));
  }
  TRY_ASSIGN(const storage::Root root, policy.root_of(*storage));
  TRY_ASSIGN(storage::CheckpointFiles files, open_directory(root, id));
  return StoredCheckpoint(id, std::move(files), std::nullopt);
}

Result<OpenFile> StoredCheckpoint::file(const std::string& name, std::int64_t size) const {
  if (files_) {
    TRY_ASSIGN(const storage::StoredFile file, files_->file(name));
    return OpenFile{file.size(), file.changed(), [file](std::int64_t left) { return file.read(left); }};
  }
  TRY(storage::check_file_name(name));
  // Size of a range request.
  static constexpr std::int64_t kPieceBytes = 8 << 20;
  const auto read = [bucket = *bucket_, key = id_.value + "/" + name, size](std::int64_t left) {
    return bucket.get_range(key, size - left, std::min(left, kPieceBytes));
  };
  return OpenFile{size, 0, read};
}

Status StoredCheckpoint::remove(const std::vector<std::string>& names) const {
  for (const std::string& name : names) TRY(storage::check_file_name(name));
  if (bucket_) {
    std::vector<std::string> keys;
    for (const std::string& name : names) keys.push_back(id_.value + "/" + name);
    return bucket_->remove(keys);
  }
  for (const std::string& name : names) TRY(files_->remove(name));
  return {};
}

Status check_bucket(const storage::StoragePolicy& policy, const Json& storage) {
  if (!storage::is_bucket(storage)) return {};
  TRY_ASSIGN(const storage::Location location, policy.bucket_of(storage));
  return storage::Bucket(location, kShortTimeouts).check();
}

}  // namespace det::api
