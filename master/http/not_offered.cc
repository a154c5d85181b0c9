// Table of the calls that are not offered. A test compares it with the one in README.md.
#include "master/http/not_offered.h"

#include "common/base/text.h"

namespace det::http {
namespace {

constexpr NotOffered kTable[] = {
    {"POST", "/api/v1/allocations/{allocationId}/notify_container_running",
     "agents report the state of allocations"},
    {"GET", "/api/v1/checkpoints/{checkpointUuid}/metrics",
     "read the checkpoint; its metrics are part of it"},
    {"GET", "/api/v1/experiments/metrics-stream/metric-names",
     "follow /api/v1/events and read /api/v1/trials/time-series"},
    {"GET", "/api/v1/experiments/{experimentId}/metrics-stream/batches",
     "follow /api/v1/events and read /api/v1/trials/time-series"},
    {"GET", "/api/v1/experiments/{experimentId}/metrics-stream/trials-sample",
     "follow /api/v1/events and read /api/v1/trials/time-series"},
    {"GET", "/api/v1/experiments/{experimentId}/metrics-stream/trials-snapshot",
     "follow /api/v1/events and read /api/v1/trials/time-series"},
    {"GET", "/api/v1/models/{modelName}/versions/{modelVersionNum}/metrics",
     "read the trial of the version's checkpoint for its metrics"},
    {"POST", "/api/v1/namespace-bindings/bulk-auto-create", "agents are the only resource manager"},
    {"GET", "/api/v1/projects/{projectId}/metadata/{key}", "projects have no metadata"},
    {"POST", "/api/v1/trial-source-info", "read the trial of the version's checkpoint for its metrics"},
    {"POST", "/api/v1/trials/profiler/metrics",
     "the profiler's groups are metrics: read /api/v1/trials/time-series"},
    {"GET", "/api/v1/trials/{labels_trialId}/profiler/metrics",
     "the profiler's groups are metrics: read /api/v1/trials/time-series"},
    {"GET", "/api/v1/trials/{trialId}/profiler/available_series",
     "the profiler's groups are metrics: read /api/v1/trials/time-series"},
    {"POST", "/api/v1/workspaces/{id}/set-resource-quota", "workspaces have no resource quotas"},
    {"DELETE", "/api/v1/workspaces/{workspaceId}/namespace-bindings", "agents are the only resource manager"},
    {"POST", "/api/v1/workspaces/{workspaceId}/namespace-bindings", "agents are the only resource manager"},
};

/// A segment in braces matches any segment that is not empty.
bool same_path(std::string_view pattern, std::string_view path) {
  const auto wanted = split(pattern, '/'), given = split(path, '/');
  if (wanted.size() != given.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].starts_with('{') ? given[i].empty() : wanted[i] != given[i]) return false;
  }
  return true;
}

}  // namespace

std::span<const NotOffered> not_offered() { return kTable; }

const NotOffered* find_not_offered(std::string_view verb, std::string_view path) {
  for (const NotOffered& one : kTable)
    if (one.verb == verb && same_path(one.path, path)) return &one;
  return nullptr;
}

}  // namespace det::http
