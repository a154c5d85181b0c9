// Column list of a checkpoint for the queries. Private to master/db.
#pragma once

#include "master/db/pg/pg.h"
#include "master/db/queries/queries_checkpoint.h"

/// Columns in the order of read_checkpoint(), from "checkpoints c" with DET_CHECKPOINT_JOINS.
#define DET_CHECKPOINT_COLUMNS                                                                           \
  "c.uuid, c.trial_id, t.experiment_id, c.run, c.task_id, c.allocation_id, c.state, c.steps_completed, " \
  "c.resources,"                                                                                         \
  " c.metadata, c.size, c.reported, t.hparams, v.metrics, r.metrics, v.searcher_metric"
/// t: the trial. v and r: the visible validation and training report at the step of the checkpoint.
#define DET_CHECKPOINT_JOINS                                                                    \
  " JOIN trials t ON t.id = c.trial_id"                                                         \
  " LEFT JOIN metrics v ON v.trial_id = c.trial_id AND v.grp = 'validation' AND NOT v.archived" \
  " AND v.steps_completed = c.steps_completed"                                                  \
  " LEFT JOIN metrics r ON r.trial_id = c.trial_id AND r.grp = 'training' AND NOT r.archived"   \
  " AND r.steps_completed = c.steps_completed"

namespace det::db {

/// Reads the columns DET_CHECKPOINT_COLUMNS.
CheckpointRow read_checkpoint(Rows::Row& row);

}  // namespace det::db
