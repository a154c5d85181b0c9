// Slurm over slurmrestd: the jobs of one pool by HTTP with a JSON web token. Blocks up to a few seconds for
// each call; responses are bounded.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/event.h"
#include "common/base/json.h"
#include "common/storage/http.h"
#include "master/config/pools.h"
#include "master/engines/engine.h"

namespace det::engines {

/// Reads the jobs of a user in a response to GET /jobs. Errors: kDataLoss (it is no list of jobs).
Result<std::vector<EngineJob>> parse_rest_jobs(const Json& response, const std::string& user);
/// Returns the body of a submission. `config` has its slots (with_slots).
Json rest_submission(const ProviderConfig& config, const core::SubmitPilot& pilot);

class SlurmRest : public Engine {
 public:
  /// `http`: storage::exchange, or a script in tests.
  SlurmRest(ProviderConfig config, std::function<Result<storage::Answer>(const storage::Exchange&)> http)
      : config_(std::move(config)), http_(std::move(http)) {}

  std::string name() const override { return "slurmrestd"; }
  /// One request, whatever the number of jobs.
  Result<std::vector<EngineJob>> list() override;
  Result<std::string> submit(const core::SubmitPilot& pilot) override;
  Status cancel(const std::vector<std::string>& ids) override;
  int take_requests() override { return std::exchange(requests_, 0); }
  void stop() override { stopped_.set(); }

 private:
  /// Calls METHOD /slurm/VERSION + `path`. The token is read again each time, because tokens expire. Errors:
  /// kUnavailable (no reply, or an invalid token), kInvalidArgument (Slurm refuses the call).
  Result<Json> call(const std::string& method, const std::string& path, const Json& body);

  const ProviderConfig config_;
  const std::function<Result<storage::Answer>(const storage::Exchange&)> http_;
  Event stopped_;
  int requests_ = 0;
};

}  // namespace det::engines
