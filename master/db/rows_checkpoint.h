// Owns the columns of a checkpoint row as the queries read it. Not for other rooms.
#pragma once

#include "master/db/pg.h"
#include "master/db/queries_checkpoint.h"

/// In the order read_checkpoint() takes them; from checkpoints c with DET_CHECKPOINT_JOINS.
#define DET_CHECKPOINT_COLUMNS                                                                           \
  "c.uuid, c.trial_id, t.experiment_id, c.run, c.task_id, c.allocation_id, c.state, c.steps_completed, " \
  "c.resources,"                                                                                         \
  " c.metadata, c.size, c.reported, t.hparams, v.metrics, r.metrics, v.searcher_metric"
#define DET_CHECKPOINT_JOINS                                                                    \
  " JOIN trials t ON t.id = c.trial_id"                                                         \
  " LEFT JOIN metrics v ON v.trial_id = c.trial_id AND v.grp = 'validation' AND NOT v.archived" \
  " AND v.steps_completed = c.steps_completed"                                                  \
  " LEFT JOIN metrics r ON r.trial_id = c.trial_id AND r.grp = 'training' AND NOT r.archived"   \
  " AND r.steps_completed = c.steps_completed"

namespace det::db {

CheckpointRow read_checkpoint(Rows::Row& row);

}  // namespace det::db
