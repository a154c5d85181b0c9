// Owns the files by which upstream's Python harness learns that it runs on a cluster:
// /run/determined/info/*.json, which its containers have, and the place /determined_shared_fs in which they
// see a storage of type shared_fs. Here det-supervisor shows the allocation's own directory and the storage's
// in these places, where it may.
#pragma once

#include <string>

#include "agent/environment.h"
#include "agent/task/task_dir.h"

namespace det::agent {

/// The files of the model directory as they were submitted, which upstream's Trainer stores in each
/// checkpoint: /run/determined/train/model. They are links to those of the working directory: a task that
/// writes into a file of its own model changes both.
Status link_model(const TaskDir& dir);

/// Writes the files below upstream()/info, and the link upstream_storage(); makes the directory that this
/// names.
Status write_upstream_info(const TaskDir& dir, const v1::StartAllocation& order, const Surroundings& around);

}  // namespace det::agent
