// Owns SearchService: looking through many experiments.
#pragma once

#include "det/v1/search.pb.h"
#include "master/api/service.h"

namespace det::api {

class SearchService final : public Service {
 public:
  explicit SearchService(const Context& context);
  Status SearchExperiments(const Caller& caller, const v1::SearchExperimentsRequest& request,
                           v1::SearchExperimentsResponse* response);
};

}  // namespace det::api
