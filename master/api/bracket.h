// Owns how a search by halving stands; BracketService.
#pragma once

#include "det/v1/bracket.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

/// The stored events are replayed, off the core's thread: it tells of ended searches too, and nothing is stored twice.
class BracketService final : public v1::BracketService::CallbackService {
 public:
  explicit BracketService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetExperimentBrackets(grpc::CallbackServerContext* call,
                                                  const v1::GetExperimentBracketsRequest* request,
                                                  v1::GetExperimentBracketsResponse* response) override;

 private:
  const Context& context_;
};

}  // namespace det::api
