// Owns RunService: upstream's name for a trial that reports, and what people note about it.
#pragma once

#include "det/v1/run.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class RunService final : public v1::RunService::CallbackService {
 public:
  explicit RunService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* RunPrepareForReporting(grpc::CallbackServerContext* call,
                                                   const v1::RunPrepareForReportingRequest* request,
                                                   v1::RunPrepareForReportingResponse* response) override;
  grpc::ServerUnaryReactor* GetRunMetadata(grpc::CallbackServerContext* call,
                                           const v1::GetRunMetadataRequest* request,
                                           v1::GetRunMetadataResponse* response) override;
  grpc::ServerUnaryReactor* PostRunMetadata(grpc::CallbackServerContext* call,
                                            const v1::PostRunMetadataRequest* request,
                                            v1::PostRunMetadataResponse* response) override;

 private:
  const Context& context_;
};

}  // namespace det::api
