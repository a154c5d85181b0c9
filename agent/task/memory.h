// Owns what the kernel says of memory where this process runs: its control group's limit, and how often
// somebody there was killed for want of it.
#pragma once

#include <cstdint>
#include <string>

namespace det::agent {

/// How often since the group exists (of a machine without memory groups: since boot); 0 when nobody says.
std::int64_t oom_kills();
/// The least of the limits of the group and those above it, else the machine's memory; in bytes, 0 when
/// nobody says.
std::int64_t memory_limit();

}  // namespace det::agent
