// Owns AllocationService: the attempts of a trial.
#pragma once

#include "det/v1/allocation.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class AllocationService final : public v1::AllocationService::CallbackService {
 public:
  explicit AllocationService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetTrialAllocations(grpc::CallbackServerContext* call, const v1::GetTrialAllocationsRequest* request,
                               v1::GetTrialAllocationsResponse* response) override;

 private:
  const Context& context_;
};

}  // namespace det::api
