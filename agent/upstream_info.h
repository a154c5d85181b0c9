// Owns the files by which upstream's Python harness learns that it runs on a cluster: /run/determined/info/*.json, which
// its containers have. Here det-supervisor shows the allocation's own directory in that place, where it may.
#pragma once

#include <string>

#include "agent/environment.h"

namespace det::agent {

/// Writes the files below `directory`/info.
Status write_upstream_info(const std::string& directory, const v1::StartAllocation& order, const Surroundings& around);

}  // namespace det::agent
