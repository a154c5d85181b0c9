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
    {"POST", "/api/v1/cleanup_logs", "read the trial's logs"},
    {"GET", "/api/v1/experiments/metrics-stream/metric-names",
     "follow /api/v1/events and read /api/v1/trials/time-series"},
    {"GET", "/api/v1/experiments/{experimentId}/metrics-stream/batches",
     "follow /api/v1/events and read /api/v1/trials/time-series"},
    {"GET", "/api/v1/experiments/{experimentId}/metrics-stream/trials-sample",
     "follow /api/v1/events and read /api/v1/trials/time-series"},
    {"GET", "/api/v1/experiments/{experimentId}/metrics-stream/trials-snapshot",
     "follow /api/v1/events and read /api/v1/trials/time-series"},
    {"PUT", "/api/v1/experiments/{experimentId}/retain_logs",
     "set retention_policy in the experiment's configuration"},
    {"DELETE", "/api/v1/experiments/{experimentId}/tensorboard-files",
     "TensorBoard files are deleted with the experiment"},
    {"GET", "/api/v1/k8s-resource-managers", "agents are the only resource manager"},
    {"GET", "/api/v1/master/telemetry", "the master sends no telemetry"},
    {"GET", "/api/v1/models/{modelName}/versions/{modelVersionNum}/metrics",
     "read the trial of the version's checkpoint for its metrics"},
    {"POST", "/api/v1/namespace-bindings/bulk-auto-create", "agents are the only resource manager"},
    {"GET", "/api/v1/namespace-bindings/workspace-ids-with-default-bindings",
     "agents are the only resource manager"},
    {"PUT", "/api/v1/projects/{projectId}/experiments/retain_logs",
     "set retention_policy in the experiment's configuration"},
    {"GET", "/api/v1/projects/{projectId}/metadata/{key}", "projects have no metadata"},
    {"DELETE", "/api/v1/resource-pools/{resourcePoolName}/workspace-bindings",
     "agents name their pool; every pool is open to every workspace"},
    {"GET", "/api/v1/resource-pools/{resourcePoolName}/workspace-bindings",
     "agents name their pool; every pool is open to every workspace"},
    {"POST", "/api/v1/resource-pools/{resourcePoolName}/workspace-bindings",
     "agents name their pool; every pool is open to every workspace"},
    {"PUT", "/api/v1/resource-pools/{resourcePoolName}/workspace-bindings",
     "agents name their pool; every pool is open to every workspace"},
    {"GET", "/api/v1/tasks/{taskId}/acceleratorData", "the task's allocations list their slots"},
    {"POST", "/api/v1/tasks/{taskId}/pause",
     "generic tasks cannot be paused; kill the task and create it again"},
    {"POST", "/api/v1/tasks/{taskId}/unpause",
     "generic tasks cannot be paused; kill the task and create it again"},
    {"POST", "/api/v1/trial-source-info", "read the trial of the version's checkpoint for its metrics"},
    {"GET", "/api/v1/trials/by-external-id/{externalExperimentId}/{externalTrialId}",
     "create a detached experiment: det.v1.ExperimentService with `detached`"},
    {"POST", "/api/v1/trials/profiler/metrics",
     "the profiler's groups are metrics: read /api/v1/trials/time-series"},
    {"GET", "/api/v1/trials/{id}/remaining_log_retention_days",
     "retention_policy of the experiment's configuration says how long logs are kept"},
    {"GET", "/api/v1/trials/{labels_trialId}/profiler/metrics",
     "the profiler's groups are metrics: read /api/v1/trials/time-series"},
    {"GET", "/api/v1/trials/{trialId}/profiler/available_series",
     "the profiler's groups are metrics: read /api/v1/trials/time-series"},
    {"PUT", "/api/v1/trials/{trialId}/retain_logs", "set retention_policy in the experiment's configuration"},
    {"GET", "/api/v1/user/projects/activity", "activity of users is not stored"},
    {"POST", "/api/v1/users/activity", "activity of users is not stored"},
    {"GET", "/api/v1/workspaces/{id}/get-k8s-resource-quotas", "agents are the only resource manager"},
    {"GET", "/api/v1/workspaces/{id}/list-namespace-bindings", "agents are the only resource manager"},
    {"POST", "/api/v1/workspaces/{id}/set-resource-quota", "workspaces have no resource quotas"},
    {"GET", "/api/v1/workspaces/{workspaceId}/available-resource-pools",
     "every pool is open to every workspace"},
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
