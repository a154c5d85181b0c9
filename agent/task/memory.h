// Memory limit and OOM kills of a control group, as reported by the kernel. `group` is its directory; "":
// that of this process.
#pragma once

#include <cstdint>
#include <string>

namespace det::agent {

/// Returns the number of OOM kills in the group since it exists, without memory groups on the machine since
/// boot. 0 if unknown.
std::int64_t oom_kills(const std::string& group);
/// Returns the lowest limit of the group and its ancestors, at most the machine's memory, in bytes. 0 if
/// unknown.
std::int64_t memory_limit(const std::string& group);

}  // namespace det::agent
