// Classification of the end of a task's main process.
#pragma once

#include "agent/core/core.h"
#include "common/task/task_dir.h"

namespace det::agent {

/// Classifies an exit and describes it for users. Pure.
///
///   kHung          the supervisor detected a hang, whatever the exit status
///   kOutOfMemory   the kernel counted an OOM kill, or the last lines report one of a device or an allocator
///   kStorageFull   exit code kExitStorageFull (common/base/exit_codes.h)
///   kFailed        any other failure
///
/// The message is one line; the stack of a hung task follows, then, after a failure, the task's last lines,
/// those of the form "error: …" first.
Exit classify_exit(const TaskExit& exit);

}  // namespace det::agent
