#include "master/db/ingest/metric_triggers.h"

#include <algorithm>

namespace det::db {
namespace {

/// The JSON text of a name; "" if other texts stand for the same name.
std::string text_in_json(const std::string& name) {
  const bool is_plain = std::ranges::all_of(
      name, [](unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '/'; });
  return is_plain ? '"' + name + '"' : "";
}

}  // namespace

Status MetricTriggers::load(Connection& connection) {
  const std::uint64_t generation = generation_;
  if (generation == loaded_) return {};
  TRY_ASSIGN(const Rows rows,
             connection.query("SELECT DISTINCT condition::json ->> 'metric' FROM webhook_triggers"
                              " WHERE kind = 'METRIC_THRESHOLD_EXCEEDED'"));
  names_.clear();
  for (Rows::Row row : rows) names_.push_back(text_in_json(row.next<std::string>()));
  loaded_ = generation;
  return {};
}

bool MetricTriggers::may_match(const std::string& metrics) const {
  return std::ranges::any_of(names_,
                             [&](const std::string& name) { return metrics.find(name) != metrics.npos; });
}

Status MetricTriggers::queue(Connection& connection, const std::vector<const MetricBatch*>& batches) const {
  std::vector<std::int64_t> trials, steps;
  std::vector<std::string> groups, metrics;
  for (const MetricBatch* batch : batches) {
    for (const MetricRow& row : batch->rows) {
      if (!may_match(row.metrics)) continue;
      trials.push_back(batch->trial.value);
      steps.push_back(row.steps_completed);
      groups.push_back(row.group);
      metrics.push_back(row.metrics);
    }
  }
  if (trials.empty()) return {};
  TRY(
      connection.query("SELECT queue_metric_webhooks(trial, grp, steps, reported::json)"
                       " FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[])"
                       " AS r (trial, grp, steps, reported)",
                       trials, groups, steps, metrics));
  return {};
}

}  // namespace det::db
