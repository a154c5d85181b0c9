// Owns why a trial or a command waits; ExplanationService. Computed on a copy of its pool, off the core's
// thread.
#pragma once

#include "det/v1/explanation.pb.h"
#include "master/api/service.h"

namespace det::api {

class ExplanationService final : public Service {
 public:
  explicit ExplanationService(const Context& context);
  Status ExplainTrial(const Caller& caller, const v1::ExplainTrialRequest& request,
                      v1::ExplainTrialResponse* response);
  Status ExplainExperiment(const Caller& caller, const v1::ExplainExperimentRequest& request,
                           v1::ExplainExperimentResponse* response);
};

/// Why a command waits, or what it does instead.
Status explain_command(const Context& context, const core::Command& command, v1::Explanation* out);

}  // namespace det::api
