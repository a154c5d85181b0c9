// Owns the translation of the core's writes into statements. Not for other rooms.
#pragma once

#include <vector>

#include "master/core/effect.h"
#include "master/db/pg.h"

namespace det::db {

/// Of tasks' logs: whoever writes them holds these, so that positions in them are taken in order.
Statement lock_tasks(const std::vector<std::string>& tasks);
/// All that the groups come to, in order, the locks first. A row that is written several times is written
/// once, as it is in the end, where it came first: readers see the transaction whole. Every transaction that
/// touches several of a kind takes their locks in one order: tasks' logs, trials, checkpoints, summaries of
/// experiments, each sorted.
std::vector<Statement> statements_for(const std::vector<const std::vector<core::Write>*>& groups);

}  // namespace det::db
