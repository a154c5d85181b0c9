// Translation of the core's writes into SQL statements. Private to master/db.
#pragma once

#include <vector>

#include "master/core/effect.h"
#include "master/db/pg/pg.h"

namespace det::db {

/// Locks the logs of tasks until the end of the transaction. Every writer of task logs takes these locks, so
/// that line ids become visible in order.
Statement lock_tasks(const std::vector<std::string>& tasks);
/// Translates groups of writes into the statements of one transaction, locks first. A row that is written
/// several times is written once, with its final value, at the place of its first write: readers see only
/// whole transactions.
///
/// To avoid deadlocks, every transaction that locks several rows of a kind does so in this order, each kind
/// sorted: task logs, trials, checkpoints, experiment summaries.
std::vector<Statement> statements_for(const std::vector<const std::vector<core::Write>*>& groups);

}  // namespace det::db
