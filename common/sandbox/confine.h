// Privileges of a task's processes.
#pragma once

#include <sys/types.h>

#include <optional>

#include "common/base/result.h"

namespace det {

/// Threads and processes of one task.
constexpr int kMaxTaskProcesses = 16'384;

/// User and group that a task sees itself as. They give it no rights on the machine.
struct ShownUser {
  uid_t uid = 0;
  gid_t gid = 0;
  bool operator==(const ShownUser&) const = default;
};

/// Takes privileges from this process and its later children for good: user and group become `uid` (if set),
/// without supplementary groups, in a user namespace that shows them as `shown` (if set); no capabilities, no
/// new privileges, no core dumps, at most kMaxTaskProcesses processes of the user; the system calls of
/// syscall_filter.h fail; abstract sockets of other processes are out of reach (since Linux 6.12). The
/// process is killed with its parent. The process must be single-threaded. Errors: of the kernel; the process
/// is then in an unknown state and must end.
Status confine(std::optional<uid_t> uid, std::optional<ShownUser> shown = {});

/// Removes all capabilities from the bounding set of this process, as far as it may.
void drop_bounding_set();

}  // namespace det
