// Owns JobService: the queues as the core has them in memory, and moving what stands in them.
#pragma once

#include "det/v1/job.pb.h"
#include "master/api/service.h"
#include "master/db/queries_experiment.h"

namespace det::api {

/// What the core cannot know: do the config policies allow the change, is the pool there and large enough?
/// kInvalidArgument.
Status check_job_update(const Context& context, const core::UpdateJob& input);

class JobService final : public Service {
 public:
  explicit JobService(const Context& context);
  Status GetJobs(const Caller& caller, const v1::GetJobsRequest& request, v1::GetJobsResponse* response);
  Status GetJobsV2(const Caller& caller, const v1::GetJobsRequest& request, v1::GetJobsV2Response* response);
  Status GetJobQueueStats(const Caller& caller, const v1::GetJobQueueStatsRequest& request,
                          v1::GetJobQueueStatsResponse* response);
  Status UpdateJobQueue(const Caller& caller, const v1::UpdateJobQueueRequest& request,
                        v1::UpdateJobQueueResponse* response);

 private:
  Result<std::vector<v1::Job>> jobs(const Caller& caller) const;
  Result<std::vector<v1::Job>> page(const Caller& caller, const v1::GetJobsRequest& request,
                                    v1::Pagination* pagination) const;
};

}  // namespace det::api
