// Owns what the end of a task's main process means: whose fault it was, in words for people.
#pragma once

#include "agent/core/core.h"
#include "agent/task/task_dir.h"

namespace det::agent {

/// It hung when the supervisor says so, however it left when it was asked to. Out of memory is what the
/// kernel has counted, or what the task's last lines say of a device or an allocator; storage full what they
/// say. The message is one line, and below it the task's last lines when it failed. Pure.
Exit verdict_of(const TaskExit& exit);

}  // namespace det::agent
