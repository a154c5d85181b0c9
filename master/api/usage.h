// Owns UsageService: who held slots, and for how long.
#pragma once

#include "det/v1/usage.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class UsageService final : public v1::UsageService::CallbackService {
 public:
  explicit UsageService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* ResourceAllocationRaw(grpc::CallbackServerContext* call,
                                                  const v1::ResourceAllocationRawRequest* request,
                                                  v1::ResourceAllocationRawResponse* response) override;
  grpc::ServerUnaryReactor* ResourceAllocationAggregated(grpc::CallbackServerContext* call,
                                                         const v1::ResourceAllocationAggregatedRequest* request,
                                                         v1::ResourceAllocationAggregatedResponse* response) override;

 private:
  const Context& context_;
};

}  // namespace det::api
