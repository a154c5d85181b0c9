// JobService: lists the job queues from the memory of the core, and changes positions in them. A job is an
// experiment or a command.
#pragma once

#include "det/v1/job.pb.h"
#include "master/api/service.h"
#include "master/db/queries/experiments.h"

namespace det::api {

/// Checks what the core cannot: limits of config policies, and whether the pool exists and could fit the job.
/// Blocks on the core and the database. Errors: kInvalidArgument, kUnavailable.
Status check_job_update(const Context& context, const core::UpdateJob& input);

/// Paused and detached experiments have no place in a queue.
class JobService final : public Service {
 public:
  explicit JobService(const Context& context);
  /// Lists the jobs that the caller may see, by pool and queue position. Filters by pool and state.
  Status GetJobs(const Caller& caller, const v1::GetJobsRequest& request, v1::GetJobsResponse* response);
  /// Lists all jobs in the V2 format of Determined AI. Of those that the caller may not see it has neither
  /// name nor owner.
  Status GetJobsV2(const Caller& caller, const v1::GetJobsRequest& request, v1::GetJobsV2Response* response);
  /// Counts queued and scheduled jobs of each pool, as far as the caller may see them.
  Status GetJobQueueStats(const Caller& caller, const v1::GetJobQueueStatsRequest& request,
                          v1::GetJobQueueStatsResponse* response);
  /// Applies changes in order. All of them are checked first; if the core refuses one, the earlier ones stay.
  /// Idempotent. Errors: kNotFound for an ended job; kInvalidArgument.
  Status UpdateJobQueue(const Caller& caller, const v1::UpdateJobQueueRequest& request,
                        v1::UpdateJobQueueResponse* response);

 private:
  /// All jobs in queue order, as far as the caller may see them. Errors: kUnavailable.
  Result<std::vector<v1::JobView>> jobs(const Caller& caller) const;
};

}  // namespace det::api
