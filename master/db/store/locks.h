// Locks that several writers take, and their order. To avoid deadlocks, every transaction that locks several
// rows of a kind does so in this order, each kind sorted: task logs, trials, checkpoints, experiments, their
// summaries, projects, workspaces. An edit of an experiment locks its row, and then its summary through a
// trigger.
#pragma once

#include <string>
#include <vector>

#include "master/db/pg/pg.h"

namespace det::db {

/// Locks the logs of tasks until the end of the transaction. Every writer of task logs takes these locks, so
/// that line ids become visible in order.
Statement lock_tasks(const std::vector<std::string>& tasks);

}  // namespace det::db
