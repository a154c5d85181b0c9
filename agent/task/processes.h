// Owns finding and ending processes through /proc: descendants of a supervisor, and what a killed supervisor
// left.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "agent/task/task_dir.h"
#include "base/clock.h"
#include "base/fd.h"

namespace det::agent {

/// The live process `pid`; nothing when there is none (a zombie is none).
std::optional<ProcessId> identify(pid_t pid);
/// A pidfd (readable at the process's end); none when that very process is gone.
UniqueFd open_process(const ProcessId& process);

/// All live descendants of `ancestor`, itself not among them.
std::vector<pid_t> descendants(pid_t ancestor);
/// What a live process does, for people: "det-harness (pid 12): state S, waits in futex_wait_queue"; the
/// place in the kernel where we may know it. "" when it is gone.
std::string describe_process(pid_t pid);
/// All live processes whose environment, as they were started, has exactly `entry` ("NAME=value"); those that
/// may not be read are passed over. This process is never among them.
std::vector<pid_t> with_environment(const std::string& entry);
/// SIGKILL to all with_environment(entry), again and again until none is left or `timeout` has passed; true
/// when none is left. Blocks.
bool kill_with_environment(const std::string& entry, Duration timeout);

}  // namespace det::agent
