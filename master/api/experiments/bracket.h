// BracketService: progress of searches with successive halving (ASHA), bracket by bracket.
#pragma once

#include "det/v1/bracket.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Replays the stored events of a search on the worker thread. This works for ended searches too and needs
/// neither the core nor extra tables.
class BracketService final : public Service {
 public:
  explicit BracketService(const Context& context);
  /// Returns brackets, their rungs and trials; none for searchers that stop no trial early. Errors:
  /// kNotFound; kDataLoss when the stored events cannot be parsed.
  Status GetExperimentBrackets(const Caller& caller, const v1::GetExperimentBracketsRequest& request,
                               v1::GetExperimentBracketsResponse* response);
};

}  // namespace det::api
