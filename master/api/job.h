// Owns JobService: the queues as the core has them in memory, and moving what stands in them.
#pragma once

#include "det/v1/job.grpc.pb.h"
#include "master/api/unary.h"
#include "master/db/queries_experiment.h"

namespace det::api {

/// What the core cannot know: do the config policies allow the change, is the pool there and large enough?
/// kInvalidArgument.
Status check_job_update(const Context& context, const core::UpdateJob& input);

class JobService final : public v1::JobService::CallbackService {
 public:
  explicit JobService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetJobs(grpc::CallbackServerContext* call, const v1::GetJobsRequest* request,
                                    v1::GetJobsResponse* response) override;
  grpc::ServerUnaryReactor* GetJobsV2(grpc::CallbackServerContext* call, const v1::GetJobsRequest* request,
                                      v1::GetJobsV2Response* response) override;
  grpc::ServerUnaryReactor* GetJobQueueStats(grpc::CallbackServerContext* call,
                                             const v1::GetJobQueueStatsRequest* request,
                                             v1::GetJobQueueStatsResponse* response) override;
  grpc::ServerUnaryReactor* UpdateJobQueue(grpc::CallbackServerContext* call,
                                           const v1::UpdateJobQueueRequest* request,
                                           v1::UpdateJobQueueResponse* response) override;

 private:
  Result<std::vector<v1::Job>> jobs(const Caller& caller) const;
  Result<std::vector<v1::Job>> page(const Caller& caller, const v1::GetJobsRequest& request,
                                 v1::Pagination* pagination) const;
  const Context& context_;
};

}  // namespace det::api
