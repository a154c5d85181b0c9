#include "cli/experiment/workloads.h"

#include <map>

namespace det::cli {
namespace {

/// Workloads at one number of batches; null when there is none.
struct Row {
  const v1::MetricsWorkload* training = nullptr;
  const v1::MetricsWorkload* validation = nullptr;
  const v1::CheckpointWorkload* checkpoint = nullptr;
};

std::string workload_metrics_text(const v1::MetricsWorkload* workload) {
  if (workload == nullptr) return "";
  std::map<std::string, std::string> values;  ///< sorted by name
  for (const auto& [name, value] : workload->metrics().avg_metrics().fields()) {
    values[name] = value.has_number_value() ? number_text(value.number_value()) : value.string_value();
  }
  std::string text;
  for (const auto& [name, value] : values) text += (text.empty() ? "" : ", ") + name + "=" + value;
  return text;
}

/// End of the validation, else of the training report, else of the checkpoint.
std::string report_time(const Row& row) {
  if (row.validation != nullptr) return time_text(row.validation->end_time(), row.validation->has_end_time());
  if (row.training != nullptr) return time_text(row.training->end_time(), row.training->has_end_time());
  return time_text(row.checkpoint->end_time(), row.checkpoint->has_end_time());
}

}  // namespace

Table workload_table(const std::vector<std::pair<int, std::vector<v1::WorkloadContainer>>>& trials,
                     bool name_trial) {
  Table table{{"# of Batches", "Report Time", "Training Metrics", "Checkpoint", "Checkpoint UUID",
               "Validation Metrics"},
              {}};
  if (name_trial) table.columns.insert(table.columns.begin(), "Trial ID");
  for (const auto& [trial, workloads] : trials) {
    // Keyed by number of batches: the map sorts the rows.
    std::map<int, Row> rows;
    for (const v1::WorkloadContainer& each : workloads) {
      if (each.has_training()) rows[each.training().total_batches()].training = &each.training();
      if (each.has_validation()) rows[each.validation().total_batches()].validation = &each.validation();
      if (each.has_checkpoint()) rows[each.checkpoint().total_batches()].checkpoint = &each.checkpoint();
    }
    for (const auto& [batches, row] : rows) {
      std::vector<std::string> cells{std::to_string(batches),
                                     report_time(row),
                                     workload_metrics_text(row.training),
                                     row.checkpoint != nullptr ? state_text(row.checkpoint->state()) : "",
                                     row.checkpoint != nullptr ? row.checkpoint->uuid() : "",
                                     workload_metrics_text(row.validation)};
      if (name_trial) cells.insert(cells.begin(), std::to_string(trial));
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

}  // namespace det::cli
