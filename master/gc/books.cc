#include "master/gc/books.h"

#include <cmath>

#include "master/db/queries/queries_gc.h"

namespace det::gc {

Result<Books> load_books(db::Pool& pool, ExperimentId id) {
  Books books;
  TRY_ASSIGN(
      const db::Rows policy,
      pool.query(
          "SELECT coalesce((s->>'save_experiment_best')::int, 0), coalesce((s->>'save_trial_best')::int, 1),"
          " coalesce((s->>'save_trial_latest')::int, 1), smaller_is_better FROM (SELECT"
          " config->'checkpoint_storage' AS s, smaller_is_better FROM experiments WHERE id = $1) e",
          id));
  if (policy.empty()) return fail(Code::kNotFound, "experiment " + std::to_string(id.value) + " not found");
  policy[0].into(books.keep.experiment_best, books.keep.trial_best, books.keep.trial_latest,
                 books.keep.smaller_is_better);
  // Read trials before checkpoints: a trial that has ended at this point gets no more checkpoints.
  TRY_ASSIGN(const db::Rows trials,
             pool.query("SELECT t.id, t.latest_checkpoint, t.state NOT IN " DET_ENDED
                        ", t.state NOT IN " DET_ENDED " OR t.state = 'ERROR' AND e.state NOT IN " DET_ENDED
                        " FROM trials t JOIN experiments e ON e.id = t.experiment_id WHERE e.id = $1",
                        id));
  for (int i = 0; i < trials.size(); ++i) {
    TrialId trial;
    CheckpointId latest;
    // A failed trial counts as resumable while its experiment is open.
    bool open = false, may_go_on = false;
    trials[i].into(trial, latest, open, may_go_on);
    if (open) books.open.insert(trial);
    if (may_go_on && !latest.value.empty()) books.needed.insert(latest);
  }
  TRY_ASSIGN(
      const db::Rows rows,
      pool.query(
          "SELECT c.uuid, c.trial_id, c.steps_completed, v.searcher_metric, c.state = 'ERROR'"
          " FROM checkpoints c JOIN trials t ON t.id = c.trial_id LEFT JOIN metrics v ON"
          " v.trial_id = c.trial_id AND v.grp = 'validation' AND NOT v.archived"
          " AND v.steps_completed = c.steps_completed"
          " JOIN experiments e ON e.id = t.experiment_id WHERE t.experiment_id = $1 AND NOT e.unmanaged"
          " AND c.state IN ('COMPLETED', 'ERROR') AND NOT c.deleting"
          " ORDER BY c.trial_id, c.steps_completed, c.uuid",
          id));
  for (int i = 0; i < rows.size(); ++i) {
    Checkpoint& one = books.checkpoints.emplace_back();
    rows[i].into(one.uuid, one.trial, one.steps, one.metric, one.damaged);
    // NaN compares with nothing, so the policy must not rank by it.
    if (one.metric && std::isnan(*one.metric)) one.metric.reset();
  }
  return books;
}

}  // namespace det::gc
