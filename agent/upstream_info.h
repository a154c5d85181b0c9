// Files through which Determined AI's Python harness detects a cluster: /run/determined/info/*.json and, for
// shared_fs storage, /determined_shared_fs. det-supervisor bind-mounts the allocation's own directory and
// storage there if it has the privilege.
#pragma once

#include <string>

#include "agent/environment.h"
#include "common/task/task_dir.h"

namespace det::agent {

/// Hard-links the submitted model directory into /run/determined/train/model, which Determined AI's Trainer
/// stores in each checkpoint. A task that modifies a file of its model in place changes both. Errors: file
/// system errors.
Status link_model(const TaskDir& dir);

/// Writes the files below upstream()/info and the link upstream_storage(), and creates the directory that the
/// link points to. Errors: file system errors.
Status write_upstream_info(const TaskDir& dir, const v1::StartAllocation& order, const Surroundings& around);

}  // namespace det::agent
