// Owns why a trial or a command waits; ExplanationService. Computed on a copy of its pool, off the core's thread.
#pragma once

#include "det/v1/explanation.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class ExplanationService final : public v1::ExplanationService::CallbackService {
 public:
  explicit ExplanationService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* ExplainTrial(grpc::CallbackServerContext* call, const v1::ExplainTrialRequest* request,
                                         v1::ExplainTrialResponse* response) override;
  grpc::ServerUnaryReactor* ExplainExperiment(grpc::CallbackServerContext* call,
                                              const v1::ExplainExperimentRequest* request,
                                              v1::ExplainExperimentResponse* response) override;

 private:
  const Context& context_;
};

/// Why a command waits, or what it does instead.
Status explain_command(const Context& context, const core::Command& command, v1::Explanation* out);

}  // namespace det::api
