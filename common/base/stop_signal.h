// How a task is stopped: SIGTERM of its supervisor, and after a grace SIGKILL. Tells the SIGTERM of a task's
// supervisor from that of an engine. Slurm, and systemd with its default KillMode, signal every process of a
// job at once. The agent gets that signal, too, and lets trials save first, so det's own programs ignore all
// but the supervisor's.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/clock.h"

namespace det {

/// Time between SIGTERM and SIGKILL when a task is stopped, unless agent_kill_grace sets another.
constexpr Duration kDefaultKillGrace = std::chrono::seconds(10);

/// Variable of a task's processes: the pid, in their namespace, of the process that stops the task
/// (det-task-init).
constexpr char kSupervisorVariable[] = "DET_SUPERVISOR_PID";

/// Returns the supervisor of this process; 0 outside of a task.
inline pid_t supervisor_pid() {
  const char* const text = std::getenv(kSupervisorVariable);
  return text == nullptr ? 0 : static_cast<pid_t>(std::strtol(text, nullptr, 10));
}

/// Returns whether a stop signal of process `sender` is to be obeyed by a process of `supervisor`. A sender
/// outside the PID namespace of the task is 0 and is not obeyed. Async-signal-safe.
inline bool obeys_stop(pid_t sender, pid_t supervisor) {
  return supervisor == 0 || sender == supervisor || sender == ::getppid() || sender == ::getpid();
}

}  // namespace det
