// Conversions of database rows to messages: experiments, trials, metrics, checkpoints, logs.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/base/text.h"
#include "master/api/convert/convert.h"
#include "master/api/submit/secrets.h"

namespace det::api {
namespace {

/// Parses the file list of a checkpoint: path -> bytes. Ignores invalid entries.
void fill_resources(const std::string& json, google::protobuf::Map<std::string, std::int64_t>* out) {
  auto resources = parse_json(json, {.bytes = 16 << 20});
  if (!resources || !resources->is_object()) return;
  for (const auto& [path, size] : resources->items()) {
    if (size.is_number_integer()) (*out)[path] = size.get<std::int64_t>();
  }
}

/// Returns a log line as UTF-8. NUL stays, as in Determined AI: JSON and protobuf can carry it.
std::string log_text(std::string_view raw) {
  std::string text;
  for (std::size_t end = raw.find('\0'); end != std::string_view::npos; end = raw.find('\0')) {
    text += make_utf8(raw.substr(0, end)) + '\0';
    raw.remove_prefix(end + 1);
  }
  return text + make_utf8(raw);
}

}  // namespace

void to_proto(const db::ExperimentRow& row, v1::Experiment* out) {
  out->set_id(static_cast<int>(row.id.value));
  out->set_description(row.description);
  for (const std::string& label : row.labels) out->add_labels(label);
  to_proto(row.submitted, out->mutable_start_time());
  if (row.ended) to_proto(*row.ended, out->mutable_end_time());
  out->set_state(to_proto(row.state, row.live));
  out->set_archived(row.archived);
  out->set_detached(row.detached);
  out->set_num_trials(static_cast<int>(row.num_trials));
  out->set_username(row.username);
  out->set_display_name(row.username);
  out->set_name(row.name);
  // Wrapped fields stay unset, which JSON shows as null.
  if (row.parent) out->mutable_forked_from()->set_value(static_cast<int>(row.parent->value));
  out->mutable_progress()->set_value(row.progress);
  out->set_job_id(row.job_id);
  out->set_user_id(static_cast<int>(row.owner.value));
  out->set_resource_pool(row.resource_pool);
  out->set_notes(row.notes);
  out->set_project_id(static_cast<int>(row.project));
  out->set_project_name(row.project_name);
  out->set_workspace_id(static_cast<int>(row.workspace));
  out->set_workspace_name(row.workspace_name);
  out->set_searcher_type(row.searcher_name);
  out->set_searcher_metric(row.searcher_metric);
  if (row.best_trial) out->mutable_best_trial_id()->set_value(static_cast<int>(row.best_trial->value));
  if (row.best_metric) out->mutable_best_trial_searcher_metric()->set_value(*row.best_metric);
  out->set_checkpoint_count(static_cast<int>(row.checkpoint_count));
  out->set_checkpoint_size(row.checkpoint_size);
  out->mutable_duration()->set_value(static_cast<int>(row.duration));
  // Empty in lists; clients of Determined AI require the field.
  out->mutable_config();
  if (row.project_owner) out->set_project_owner_id(static_cast<int>(row.project_owner->value));
  out->set_parent_archived(row.parent_archived);
  if (row.request.value.starts_with(kExternal))
    out->set_external_experiment_id(row.request.value.substr(kExternal.size()));
}

// Configurations leave the master only with their secrets masked.
void to_proto(const db::ExperimentDetail& row, v1::Experiment* out) {
  to_proto(static_cast<const db::ExperimentRow&>(row), out);
  for (const TrialId trial : row.trials) out->add_trial_ids(static_cast<int>(trial.value));
  json_to_struct(masked_json(row.config), out->mutable_config());
  out->set_original_config(masked_yaml(row.original_config));
  auto it = out->config().fields().find("hyperparameters");
  if (it != out->config().fields().end()) *out->mutable_hyperparameters() = it->second.struct_value();
  out->set_model_definition_size(static_cast<int>(row.model_definition_size));
}

void to_proto(const db::MetricPoint& row, v1::MetricsWorkload* out) {
  to_proto(row.reported, out->mutable_end_time());
  json_to_struct(row.metrics, out->mutable_metrics()->mutable_avg_metrics());
  out->set_total_batches(static_cast<int>(row.steps_completed));
}

void to_proto(const db::CheckpointRow& row, v1::CheckpointWorkload* out) {
  out->set_uuid(row.uuid.value);
  to_proto(row.reported, out->mutable_end_time());
  out->set_state(checkpoint_state(row.state));
  fill_resources(row.resources, out->mutable_resources());
  out->set_total_batches(static_cast<int>(row.steps_completed));
  json_to_struct(row.metadata, out->mutable_metadata());
}

void to_proto(const db::CheckpointRow& row, const std::string& storage_root, v1::Checkpoint* out) {
  out->set_task_id(row.task.value);
  out->set_allocation_id(row.allocation.value);
  out->set_uuid(row.uuid.value);
  to_proto(row.reported, out->mutable_report_time());
  fill_resources(row.resources, out->mutable_resources());
  json_to_struct(row.metadata, out->mutable_metadata());
  out->set_state(checkpoint_state(row.state));
  v1::CheckpointTrainingMetadata* training = out->mutable_training();
  training->mutable_trial_id()->set_value(static_cast<int>(row.trial.value));
  training->mutable_experiment_id()->set_value(static_cast<int>(row.experiment.value));
  // Hyperparameters of the trial, so that a checkpoint can be understood alone.
  json_to_struct(row.hparams, training->mutable_hparams());
  // Metrics appear under "avgMetrics", as in Determined AI.
  if (!row.training_metrics.empty()) {
    json_to_struct(
        row.training_metrics,
        (*training->mutable_training_metrics()->mutable_fields())["avgMetrics"].mutable_struct_value());
  }
  if (!row.validation_metrics.empty()) {
    json_to_struct(
        row.validation_metrics,
        (*training->mutable_validation_metrics()->mutable_fields())["avgMetrics"].mutable_struct_value());
  }
  if (row.searcher_metric) training->mutable_searcher_metric()->set_value(*row.searcher_metric);
  if (!storage_root.empty()) out->set_storage_path(storage_root + "/" + row.uuid.value);
  out->set_steps_completed(static_cast<int>(row.steps_completed));
}

void to_proto(const db::TrialRow& row, v1::Trial* out) {
  const core::Trial& trial = row.trial;
  out->set_id(static_cast<int>(trial.id.value));
  out->set_experiment_id(static_cast<int>(trial.experiment.value));
  to_proto(trial.started, out->mutable_start_time());
  if (trial.ended) to_proto(*trial.ended, out->mutable_end_time());
  out->set_state(to_proto(trial.state, row.live));
  if (out->state() == v1::STATE_PULLING && row.building_since)
    to_proto(*row.building_since, out->mutable_build_time());
  out->set_restarts(trial.restarts);
  json_to_struct(trial.hparams, out->mutable_hparams());
  out->set_total_batches_processed(static_cast<int>(row.total_batches));
  if (row.best_validation) {
    to_proto(*row.best_validation, out->mutable_best_validation());
    // A validation without the searcher's metric has no such value.
    if (row.best_validation->searcher_metric) {
      out->mutable_searcher_metric_value()->set_value(*row.best_validation->searcher_metric);
    }
  }
  if (row.latest_validation) to_proto(*row.latest_validation, out->mutable_latest_validation());
  if (row.best_checkpoint) to_proto(*row.best_checkpoint, out->mutable_best_checkpoint());
  out->set_wall_clock_time(row.wall_clock);
  out->set_task_id(trial.task.value);
  out->add_task_ids(trial.task.value);
  out->set_checkpoint_count(static_cast<int>(row.checkpoint_count));
  out->set_total_checkpoint_size(row.checkpoint_size);
  out->set_run(trial.run);
  out->set_progress(trial.progress);
  out->set_exit_reason(trial.exit_reason);
  out->set_warm_start_checkpoint_uuid(row.source_checkpoint);
  if (row.log_policy) out->set_log_policy_matched(*row.log_policy);
  // The checkpoint that the next run resumes from.
  out->set_latest_checkpoint_uuid(trial.latest_checkpoint);
}

void to_proto(const db::Workload& row, v1::WorkloadContainer* out) {
  if (row.kind == db::Workload::Kind::kCheckpoint) {
    to_proto(row.checkpoint, out->mutable_checkpoint());
  } else if (row.metrics.group == "validation") {
    to_proto(row.metrics, out->mutable_validation());
  } else {
    to_proto(row.metrics, out->mutable_training());
  }
}

// The format of Determined AI's log lines.
std::string log_message(const db::LogRow& row) {
  // The gap is the column of container ids in Determined AI.
  std::string line = "[" + to_rfc3339(row.time) + "]          ";
  if (row.rank >= 0) line += "[rank=" + std::to_string(row.rank) + "] ";
  line += "|| ";
  if (!row.level.empty()) line += row.level + ": ";
  return line + log_text(row.text);
}

void to_proto(const db::LogRow& row, TrialId trial, v1::LogEntry* out) {
  out->set_id(std::to_string(row.id));
  to_proto(row.time, out->mutable_timestamp());
  // Clients of Determined AI print messages without adding line feeds.
  out->set_message(log_message(row) + "\n");
  out->set_level(log_level(row.level));
  out->set_trial_id(static_cast<int>(trial.value));
  out->set_agent_id(row.agent.value);
  out->set_rank_id(row.rank);
  out->set_log(log_text(row.text));
  out->set_source(row.source);
  out->set_stdtype(row.stdtype);
  out->set_task_id(row.task.value);
  out->set_allocation_id(row.allocation.value);
}

namespace {

/// NaN and infinities are strings, as in JSON.
void set_double(double value, google::protobuf::Value& out) {
  const Json json = json_double(value);
  if (json.is_number()) return out.set_number_value(value);
  if (json.is_string()) return out.set_string_value(json.get<std::string>());
  out.set_null_value(google::protobuf::NULL_VALUE);
}

}  // namespace

// A Struct is a hash map. An object of Json searches its keys one by one, which is slow for many metrics.
void to_proto(const std::vector<db::MetricSummary>& rows, google::protobuf::Struct* out) {
  for (const db::MetricSummary& row : rows) {
    // Determined AI has its own names for the two built-in groups.
    const std::string group = row.group == "training"     ? "avg_metrics"
                              : row.group == "validation" ? "validation_metrics"
                                                          : row.group;
    auto& metrics = *(*out->mutable_fields())[group].mutable_struct_value()->mutable_fields();
    auto& metric = *metrics[row.name].mutable_struct_value()->mutable_fields();
    metric["count"].set_number_value(static_cast<double>(row.count));
    metric["type"].set_string_value("number");
    set_double(row.last, metric["last"]);
    set_double(row.min, metric["min"]);
    set_double(row.max, metric["max"]);
    set_double(row.sum, metric["sum"]);
    set_double(row.count > 0 ? row.sum / static_cast<double>(row.count) : 0, metric["mean"]);
  }
}

void to_proto(const std::vector<db::Series>& series, v1::DownsampledMetrics* out) {
  struct Joined {
    WallTime time;
    google::protobuf::Struct values;
  };
  std::map<std::int64_t, Joined> by_steps;
  for (const db::Series& one : series) {
    for (const db::SeriesPoint& point : one.points) {
      // A map, because the series of a group may lack different steps.
      Joined& joined = by_steps[point.steps_completed];
      joined.time = point.reported;
      set_double(point.value, (*joined.values.mutable_fields())[one.name]);
    }
  }
  if (!series.empty()) out->set_group(series.front().group);
  // Other groups have no type, only a name.
  if (out->group() == "training") out->set_type(v1::METRIC_TYPE_TRAINING);
  if (out->group() == "validation") out->set_type(v1::METRIC_TYPE_VALIDATION);
  for (auto& [steps, joined] : by_steps) {
    v1::DataPoint* point = out->add_data();
    point->set_batches(static_cast<int>(steps));
    to_proto(joined.time, point->mutable_time());
    *point->mutable_values() = std::move(joined.values);
  }
}

void to_proto(const db::Series& series, v1::MetricSeries* out) {
  out->set_trial_id(static_cast<int>(series.trial.value));
  out->set_group(series.group);
  out->set_name(series.name);
  if (series.points.empty()) return;
  to_proto(series.points.front().reported, out->mutable_first_time());
  // Offsets are rounded to milliseconds of the absolute time, so that errors do not add up.
  std::int64_t steps = 0, time = series.points.front().reported.micros / 1000;
  for (const db::SeriesPoint& point : series.points) {
    out->add_batches(static_cast<int>(point.steps_completed - steps));
    out->add_values(static_cast<float>(point.value));
    const auto waited = std::clamp<std::int64_t>(point.reported.micros / 1000 - time, INT32_MIN, INT32_MAX);
    out->add_milliseconds(static_cast<int>(waited));
    steps = point.steps_completed;
    time += waited;
  }
}

}  // namespace det::api
