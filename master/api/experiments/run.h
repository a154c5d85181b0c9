// RunService: metadata of trials. "Run" is Determined AI's name for a trial in this part of its API.
#pragma once

#include "det/v1/run.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Callers are users, and processes of the trial with its allocation token.
class RunService final : public Service {
 public:
  explicit RunService(const Context& context);
  /// Accepted for compatibility; returns no storage id. Idempotent.
  Status RunPrepareForReporting(const Caller& caller, const v1::RunPrepareForReportingRequest& request,
                                v1::RunPrepareForReportingResponse* response);
  /// Returns the metadata of a trial; empty when none is set. Errors: kNotFound.
  Status GetRunMetadata(const Caller& caller, const v1::GetRunMetadataRequest& request,
                        v1::GetRunMetadataResponse* response);
  /// Replaces the metadata. Idempotent. Errors: kNotFound; kInvalidArgument when it is too large.
  Status PostRunMetadata(const Caller& caller, const v1::PostRunMetadataRequest& request,
                         v1::PostRunMetadataResponse* response);
};

}  // namespace det::api
