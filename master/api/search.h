// Owns SearchService: looking through many experiments.
#pragma once

#include "det/v1/search.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class SearchService final : public v1::SearchService::CallbackService {
 public:
  explicit SearchService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* SearchExperiments(grpc::CallbackServerContext* call, const v1::SearchExperimentsRequest* request,
                               v1::SearchExperimentsResponse* response) override;

 private:
  const Context& context_;
};

}  // namespace det::api
