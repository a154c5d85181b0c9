// Owns the translation of the core's writes into statements. Not for other rooms.
#pragma once

#include <vector>

#include "master/core/effect.h"
#include "master/db/pg.h"

namespace det::db {

/// Every transaction that touches these takes its locks in one order: tasks, then trials, each sorted.
struct Touched {
  std::vector<std::string> tasks;  ///< whose log is written
  std::vector<std::int64_t> trials;
};
void touch(const core::Write& write, Touched& touched);
Statement lock_tasks(const std::vector<std::string>& tasks);
/// Waits for bulk rows of the trials' runs to be committed, and holds off later ones.
Statement lock_trials(const std::vector<std::int64_t>& trials);
Statement statement_for(const core::Write& write);

}  // namespace det::db
