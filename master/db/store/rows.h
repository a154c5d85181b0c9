// Column lists of the core's structs and how to read them back. Shared by the store and the queries; private
// to master/db.
#pragma once

#include <string>

#include "master/core/model.h"
#include "master/db/pg/pg.h"

/// Columns of a trial in the order of read_trial().
#define DET_TRIAL_COLUMNS                                                                                 \
  "t.id, t.experiment_id, t.request_id, t.task_id, t.seed, t.hparams, t.state, t.run, t.restarts,"        \
  " t.latest_checkpoint, t.latest_steps, t.steps_completed, t.last_validation, t.checkpoint_validation, " \
  "t.searcher_steps, t.best_metric, t.early_exit_invalid_hp, t.held,"                                     \
  " t.progress, t.exit_reason, t.started, t.ended"

namespace det::db {

/// Reads the next column as a state; an unknown name yields kError.
core::State read_state(Rows::Row& row);
/// Reads the next column as an allocation state. Empty for NULL or an unknown name.
std::optional<core::AllocationState> read_allocation_state(Rows::Row& row);
/// Reads the columns DET_TRIAL_COLUMNS.
core::Trial read_trial(Rows::Row& row);

}  // namespace det::db
