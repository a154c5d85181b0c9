// Owns how the core's structs lie in their tables: the columns in order, and reading them back. Shared by the
// store and the queries; not for other rooms.
#pragma once

#include <string>

#include "master/core/model.h"
#include "master/db/pg.h"

/// In the order read_trial() takes them.
#define DET_TRIAL_COLUMNS                                                                                 \
  "t.id, t.experiment_id, t.request_id, t.task_id, t.seed, t.hparams, t.state, t.run, t.restarts,"        \
  " t.latest_checkpoint, t.latest_steps, t.steps_completed, t.last_validation, t.checkpoint_validation, " \
  "t.searcher_steps, t.best_metric, t.early_exit_invalid_hp, t.held,"                                     \
  " t.progress, t.exit_reason, t.started, t.ended"

namespace det::db {

core::State read_state(Rows::Row& row);
std::optional<core::AllocationState> read_allocation_state(Rows::Row& row);
core::Trial read_trial(Rows::Row& row);

}  // namespace det::db
