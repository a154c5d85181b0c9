// Search for and killing of processes through /proc: descendants of a supervisor, and leftovers of a killed
// one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/task/task_dir.h"

namespace det::agent {

/// Returns the identity of the live process `pid`; nothing if there is none. A zombie is not live.
std::optional<ProcessId> identify(pid_t pid);
/// Returns a pidfd, which becomes readable at the process's end; an invalid one if exactly this process is
/// gone.
UniqueFd open_process(const ProcessId& process);

/// Asks the supervisor behind `pidfd` to end its task: SIGTERM, queued as a mark of the agent.
void request_stop(int pidfd);

/// Returns all live descendants of `ancestor`, without itself.
std::vector<pid_t> descendants(pid_t ancestor);
/// Describes a live process for users: "det-harness (pid 12): state S, waits in futex_wait_queue". The kernel
/// function is omitted if unreadable. Returns "" if the process is gone.
std::string describe_process(pid_t pid);
/// Returns all live processes with exactly `entry` ("NAME=value") in their initial environment. Skips
/// unreadable ones and the calling process.
std::vector<pid_t> with_environment(const std::string& entry);
/// Sends SIGKILL to all with_environment(entry) repeatedly until none is left. Returns false if some are left
/// after `timeout`. Blocks.
bool kill_with_environment(const std::string& entry, Duration timeout);

}  // namespace det::agent
