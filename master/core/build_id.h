// Allocations that build the trial class of an experiment. A build belongs to the run that trains with its
// result, has no slots and starts no process.
#pragma once

#include <string>
#include <string_view>

#include "common/base/ids.h"

namespace det::core {

inline constexpr std::string_view kBuildSuffix = "-build";

/// Returns the id of the build of a run: "<task>.<run>-build".
inline AllocationId build_allocation_id(const TaskId& task, RunNumber run) {
  return AllocationId(task.value + "." + std::to_string(run) + std::string(kBuildSuffix));
}
/// Whether the id is that of a build. Run numbers are digits, so no other allocation has the suffix.
inline bool is_build(const AllocationId& id) { return id.value.ends_with(kBuildSuffix); }

}  // namespace det::core
