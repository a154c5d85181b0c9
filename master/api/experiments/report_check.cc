#include "master/api/experiments/report_check.h"

#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/metrics/limits.h"
#include "common/storage/checkpoint_files.h"
#include "master/db/ingest/bulk.h"

namespace det::api {

Status check_group(const std::string& group) {
  if (is_metric_group(group)) return {};
  return fail(Code::kInvalidArgument, "metric group: 1 to 128 characters without \".\"");
}

Result<std::vector<MetricKey>> check_metrics(const v1::MetricsReport& report) {
  TRY(check_group(report.group()));
  if (report.steps_completed() < 0)
    return fail(Code::kInvalidArgument, "steps_completed must not be negative");
  TRY_ASSIGN(const auto names, db::check_json_object(report.metrics(), kMaxMetricBytes, kMaxMetricDepth));
  if (names.size() > kMaxMetrics) return fail(Code::kInvalidArgument, "more than 1000 metrics in one report");
  std::vector<MetricKey> keys;
  for (const std::string& name : names) {
    keys.push_back(metric_key(report.group(), name));
    if (!is_metric_name(name))
      return fail(Code::kInvalidArgument, "metric \"" + make_utf8(name.substr(0, 256)) +
                                              "\": the name must be 1 to 256 characters of printable ASCII");
  }
  return keys;
}

Result<std::string> read_checkpoint_files(const google::protobuf::Map<std::string, std::int64_t>& files) {
  Json sizes = Json::object();
  std::int64_t total = 0;
  for (const auto& [path, size] : files) {
    // Names become paths in the storage.
    TRY(storage::check_file_name(path));
    if (size < 0 || size > kMaxCheckpointBytes)
      return fail(Code::kInvalidArgument, "checkpoint: the size of " + path +
                                              " must be 0 to 2^50 bytes, not " + std::to_string(size));
    total += size;
    if (total > kMaxCheckpointBytes)
      return fail(Code::kInvalidArgument,
                  "checkpoint: the sizes of its files add up to more than 2^50 bytes");
    sizes[path] = size;
  }
  std::string text = dump_json(sizes);
  TRY(db::check_json_object(text, 4 << 20));
  return text;
}

Result<core::ReportCheckpoint> read_checkpoint_report(const v1::CheckpointReport& report, TrialId trial,
                                                      RunNumber run, WallTime time,
                                                      std::string_view cluster_id) {
  const std::string metadata = report.metadata().empty() ? "{}" : report.metadata();
  if (report.steps_completed() < 0)
    return fail(Code::kInvalidArgument, "checkpoint: steps_completed must not be negative");
  // The id becomes a path in the storage.
  TRY_ASSIGN(CheckpointId uuid, storage::parse_checkpoint_id(report.uuid()));
  // The removal of such a checkpoint would remove TensorBoard files and media of all experiments.
  if (uuid.value == cluster_id)
    return fail(Code::kInvalidArgument, "checkpoint: its uuid must not be the id of the cluster");
  TRY_ASSIGN(std::string files, read_checkpoint_files(report.resources()));
  TRY(db::check_json_object(metadata));
  return core::ReportCheckpoint{.trial = trial,
                                .run = run,
                                .uuid = std::move(uuid),
                                .steps_completed = report.steps_completed(),
                                .resources = std::move(files),
                                .metadata = metadata,
                                .reported = time};
}

}  // namespace det::api
