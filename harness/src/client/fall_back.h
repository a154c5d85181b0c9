// Requests an alternative to a damaged checkpoint from the master. Standard library only.
#pragma once

#include <functional>
#include <string>

#include "common/base/result.h"
#include "harness/src/client/client.h"

namespace det {

/// Reports a damaged checkpoint of this trial to the master. Returns the uuid to start from instead, "" for a
/// start from scratch, or an error when there is no alternative. Blocks until the master answers.
using FallBack = std::function<Result<std::string>(const std::string& uuid, const std::string& reason)>;

}  // namespace det

/// FallBack for a process of a cluster. Exported by libdet_cluster.so.
extern "C" void det_fall_back(const det::ClusterAddress* address, const std::string* uuid,
                              const std::string* reason, det::Result<std::string>* instead);
using DetFallBack = void (*)(const det::ClusterAddress*, const std::string*, const std::string*,
                             det::Result<std::string>*);
