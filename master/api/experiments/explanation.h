// ExplanationService: explains why a trial or command waits for slots. Works on a copy of the pool, off the
// core's thread.
#pragma once

#include "det/v1/explanation.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Reports the reason, blocking jobs, suggestions and an estimate of the waiting time.
class ExplanationService final : public Service {
 public:
  explicit ExplanationService(const Context& context);
  /// Explains a trial, waiting or not. Errors: kNotFound.
  Status ExplainTrial(const Caller& caller, const v1::ExplainTrialRequest& request,
                      v1::ExplainTrialResponse* response);
  /// Explains the first waiting trial of an experiment. If none waits, returns the state of the experiment.
  /// Errors: kNotFound.
  Status ExplainExperiment(const Caller& caller, const v1::ExplainExperimentRequest& request,
                           v1::ExplainExperimentResponse* response);
};

/// Explains why a command waits, or returns its state. Blocks on the core and the database.
Status explain_command(const Context& context, const core::Command& command, v1::Explanation* out);

}  // namespace det::api
