// Owns the simplest search: one trial, trained to its end.
#pragma once

#include "master/searcher/searcher.h"

namespace det::searcher {

/// Creates one trial and never stops it. Ranges among its hyperparameters are sampled once.
class SingleSearch final : public SearchMethod {
 public:
  std::vector<Action> initial(MethodContext& context) override;
  std::vector<Action> validated(const Validated& event, MethodContext& context) override;
  std::vector<Action> exited(const Exited& event, MethodContext& context) override;
  double progress(const std::map<RequestId, double>& trial_progress) const override;
  nlohmann::json snapshot() const override;
  Status restore(const nlohmann::json& snapshot) override;
};

}  // namespace det::searcher
