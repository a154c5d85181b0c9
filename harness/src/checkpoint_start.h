// Owns the question from which checkpoint a run starts: the newest that is what was saved. Standard library
// only.
#pragma once

#include <string>

#include "base/result.h"
#include "client.h"
#include "det/distributed.h"
#include "fall_back.h"

namespace det {

/// Whether training can start from `<storage>/<uuid>`; of a bucket it is brought here first. kDataLoss when
/// it is damaged or gone; kUnavailable when the storage is not there, of which nothing can be said. A
/// directory that another program filled (no manifest of ours) is believed.
Status check_start(const std::string& storage, const std::string& uuid,
                   const storage::Bucket* bucket = nullptr);

/// The uuid to start from: info.latest_checkpoint when it is sound, else what the master names in its place,
/// until one is sound; "" is the beginning. On the chief a bucket is looked at, too: whether it can be
/// written. Every rank calls it; the chief looks and asks, all get its answer. Throws std::runtime_error on
/// all ranks.
std::string agree_on_start(DistributedContext& distributed, const TrialInfo& info, const FallBack& fall_back);

}  // namespace det
