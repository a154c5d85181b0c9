// Owns the question what to start from when a checkpoint is damaged. Standard library only.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "client.h"

namespace det {

/// Tells the master that a checkpoint of this trial is damaged: from which to go on instead, "" for the
/// beginning. Waits for the master. An error when nothing stands in for it.
using FallBack = std::function<Result<std::string>(const std::string& uuid, const std::string& reason)>;

}  // namespace det

/// Exported by libdet_cluster.so: FallBack for a process of the cluster.
extern "C" void det_fall_back(const det::ClusterAddress* address, const std::string* uuid,
                              const std::string* reason, det::Result<std::string>* instead);
using DetFallBack = void (*)(const det::ClusterAddress*, const std::string*, const std::string*,
                             det::Result<std::string>*);
