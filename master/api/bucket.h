// Owns what the master itself does with buckets in which checkpoints lie (removal: master/gc).
#pragma once

#include <optional>

#include "base/json.h"
#include "storage/bucket.h"

namespace det::api {

/// The bucket of an experiment's configuration, or none: its storage is another. The keys are those of the
/// configuration, else the master's own.
Result<std::optional<storage::Bucket>> bucket_of(const std::string& config_json);

/// Whether the `checkpoint_storage` can be used, if it is a bucket: writes, reads and removes an object.
/// Takes seconds at most.
Status check_bucket(const Json& storage);

}  // namespace det::api
