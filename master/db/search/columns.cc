#include "master/db/search/columns.h"

namespace det::db {

const std::map<std::string_view, Sortable>& experiment_columns() {
  static const std::map<std::string_view, Sortable> table = {
      {"id", {"e.id", ColumnKind::kNumber}},
      {"name", {.sql = "e.name", .never_null = true}},
      {"description", {"e.description", ColumnKind::kText}},
      {"tags", {"e.labels", ColumnKind::kArray}},
      {"state", {"e.state", ColumnKind::kState}},
      {"startTime", {"e.submitted", ColumnKind::kTime}},
      {"endTime", {"e.ended", ColumnKind::kTime}},
      {"duration",
       {"extract(epoch FROM coalesce(e.ended, now()) - e.submitted)::float8", ColumnKind::kNumber}},
      {"numTrials", {"coalesce(best.trials, 0)", ColumnKind::kNumber, ColumnTable::kSummaries}},
      {"progress", {"e.progress", ColumnKind::kNumber}},
      {"user", {"u.name", ColumnKind::kText, ColumnTable::kOwner}},
      {"resourcePool", {"e.resource_pool", ColumnKind::kText}},
      {"searcherType", {"e.searcher_name", ColumnKind::kText}},
      {"searcherMetric", {"e.searcher_metric", ColumnKind::kText}},
      {"searcherMetricsVal", {"best.metric", ColumnKind::kNumber, ColumnTable::kSummaries}},
      {"checkpointCount", {"coalesce(best.checkpoints, 0)", ColumnKind::kNumber, ColumnTable::kSummaries}},
      {"checkpointSize",
       {"coalesce(best.checkpoint_bytes, 0)", ColumnKind::kNumber, ColumnTable::kSummaries}},
      {"forkedFrom", {"e.parent_id", ColumnKind::kNumber}},
      {"unmanaged", {"e.detached", ColumnKind::kFlag}},
      {"archived", {"e.archived", ColumnKind::kFlag}},
  };
  return table;
}

const std::map<std::string_view, Sortable>& run_columns() {
  static const std::map<std::string_view, Sortable> table = {
      {"id", {"t.id", ColumnKind::kNumber}},
      {"experimentId", {"e.id", ColumnKind::kNumber}},
      {"experimentName", {"e.name", ColumnKind::kText}},
      {"experimentDescription", {"e.description", ColumnKind::kText}},
      {"tags", {"e.labels", ColumnKind::kArray}},
      {"state", {"t.state", ColumnKind::kState}},
      {"startTime", {"t.started", ColumnKind::kTime}},
      {"endTime", {"t.ended", ColumnKind::kTime}},
      {"duration", {"extract(epoch FROM coalesce(t.ended, now()) - t.started)::float8", ColumnKind::kNumber}},
      {"user", {"u.name", ColumnKind::kText, ColumnTable::kOwner}},
      {"resourcePool", {"e.resource_pool", ColumnKind::kText}},
      {"searcherType", {"e.searcher_name", ColumnKind::kText}},
      {"searcherMetric", {"e.searcher_metric", ColumnKind::kText}},
      {"searcherMetricsVal", {"t.best_metric", ColumnKind::kNumber}},
      {"checkpointCount",
       {"(SELECT count(*) FROM checkpoints c WHERE c.trial_id = t.id AND c.state = 'COMPLETED')",
        ColumnKind::kNumber}},
      {"checkpointSize",
       {"(SELECT coalesce(sum(c.size), 0) FROM checkpoints c WHERE c.trial_id = t.id AND c.state = "
        "'COMPLETED')",
        ColumnKind::kNumber}},
      {"experimentProgress", {"e.progress", ColumnKind::kNumber}},
      {"forkedFrom", {"e.parent_id", ColumnKind::kNumber}},
      {"unmanaged", {"e.detached", ColumnKind::kFlag}},
      {"archived", {"e.archived", ColumnKind::kFlag}},
  };
  return table;
}

}  // namespace det::db
