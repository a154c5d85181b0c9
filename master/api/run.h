// Owns RunService: upstream's name for a trial that reports, and what people note about it.
#pragma once

#include "det/v1/run.pb.h"
#include "master/api/service.h"

namespace det::api {

class RunService final : public Service {
 public:
  explicit RunService(const Context& context);
  Status RunPrepareForReporting(const Caller& caller, const v1::RunPrepareForReportingRequest& request,
                                v1::RunPrepareForReportingResponse* response);
  Status GetRunMetadata(const Caller& caller, const v1::GetRunMetadataRequest& request,
                        v1::GetRunMetadataResponse* response);
  Status PostRunMetadata(const Caller& caller, const v1::PostRunMetadataRequest& request,
                         v1::PostRunMetadataResponse* response);
};

}  // namespace det::api
