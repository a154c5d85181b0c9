// Quotas as listed, with the use of stored data, and the owner of a task.
#pragma once

#include "master/core/queues/quota.h"
#include "master/db/queries/page.h"

namespace det::db {

/// A quota with the use of its resource. Slots and experiments in use are known to the core only.
struct QuotaRow {
  core::Quota quota;
  std::string name;       ///< Of the user or of the workspace; "" if it does not exist any more.
  std::int64_t used = 0;  ///< Of metric_series, log_bytes and checkpoint_bytes.
};
/// Lists all quotas by scope, id and resource. Reads all trials of each owner with a quota of metric series
/// or log bytes: not for every request.
Result<std::vector<QuotaRow>> list_quotas(Pool& pool);

/// The user and the workspace to which the data of a task counts.
struct TaskOwner {
  UserId user;
  std::int64_t workspace = 0;
};
/// Returns the owner of the trial or command of an allocation. kNotFound.
Result<TaskOwner> owner_of(Pool& pool, const AllocationId& allocation);

/// Experiments of a project that have not ended, and its workspace.
struct LiveExperiments {
  std::vector<ExperimentId> ids;
  std::int64_t workspace = 0;
};
Result<LiveExperiments> live_experiments(Pool& pool, std::int64_t project);

}  // namespace det::db
