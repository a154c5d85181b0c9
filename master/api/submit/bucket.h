// Checkpoint buckets of experiments as the API uses them: download, partial removal, checks. Removal of whole
// checkpoints is in master/gc.
#pragma once

#include <optional>

#include "common/base/json.h"
#include "common/storage/bucket.h"

namespace det::api {

/// Returns the bucket in an experiment's configuration (JSON), or nothing when its storage is not a bucket.
/// Uses the access keys of the configuration, else those of the master. Does no I/O.
Result<std::optional<storage::Bucket>> bucket_of(const std::string& config_json);

/// Checks a `checkpoint_storage` section: writes, reads and removes an object if it is a bucket, otherwise
/// does nothing. Blocks for seconds. Errors: those of the storage, and of an invalid section.
Status check_bucket(const Json& storage);

}  // namespace det::api
