// The code archive of a task: from the agent's cache, else from the master.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <stop_token>
#include <string>

#include "common/base/result.h"
#include "det/v1/agent.pb.h"

namespace det::agent {

/// Returns the archive that `start` names by its digest. `cache`: directory of archives, which gets a missing
/// one. Sets `is_new` if the cache did not have it. Repeats the call for 5 minutes while the master is away,
/// which covers its restart. Blocks; returns early if `stop` is requested. Errors: kInvalidArgument (the
/// digest), kCancelled, those of the master and of the file system.
Result<std::string> fetch_code_archive(const v1::StartAllocation& start,
                                       const std::shared_ptr<grpc::Channel>& channel,
                                       const std::string& cache, const std::stop_token& stop, bool& is_new);

}  // namespace det::agent
