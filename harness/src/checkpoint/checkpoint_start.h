// Selection of the checkpoint from which a run starts: the newest one that is undamaged. Standard library
// only.
#pragma once

#include <string>

#include "common/base/result.h"
#include "det/distributed.h"
#include "harness/src/client/client.h"

namespace det {

/// Checks that training can start from `<storage>/<uuid>`; with a bucket the checkpoint is downloaded first.
/// Errors: kDataLoss when it is damaged or missing; kUnavailable when the storage is not accessible, so
/// nothing is known about the checkpoint. A directory filled by another program (without a manifest) is
/// accepted unverified.
Status check_start(const std::string& storage, const std::string& uuid,
                   const storage::Bucket* bucket = nullptr);

/// Returns the uuid to start from: info.latest_checkpoint if it is undamaged, else the first undamaged one of
/// the alternatives that `fall_back` requests from the master; "" for a start from scratch. With a bucket the
/// chief also checks that it is writable. Collective: the chief decides and all ranks return its result.
/// Throws std::runtime_error on all ranks.
std::string agree_on_start(DistributedContext& distributed, const TrialInfo& info, const FallBack& fall_back);

}  // namespace det
