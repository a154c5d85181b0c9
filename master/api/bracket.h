// Owns how a search by halving stands; BracketService.
#pragma once

#include "det/v1/bracket.pb.h"
#include "master/api/service.h"

namespace det::api {

/// The stored events are replayed, off the core's thread: it tells of ended searches too, and nothing is
/// stored twice.
class BracketService final : public Service {
 public:
  explicit BracketService(const Context& context);
  Status GetExperimentBrackets(const Caller& caller, const v1::GetExperimentBracketsRequest& request,
                               v1::GetExperimentBracketsResponse* response);
};

}  // namespace det::api
