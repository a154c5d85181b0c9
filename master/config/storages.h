// Storages that experiments may name, as the master's settings define them.
#pragma once

#include "common/base/options.h"
#include "common/storage/policy.h"

namespace det {

/// Reads `storages`, `allowed_storage_paths` and `allowed_storage_buckets`. `own` and `data_dir` are the
/// members of the result. Adds a problem for each invalid value.
storage::StoragePolicy read_storages(const Options& options, const Json& own, const std::string& data_dir,
                                     std::vector<Problem>& problems);

}  // namespace det
