// SearchService: filtered and sorted search over all visible experiments.
#pragma once

#include "det/v1/search.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Columns of filter and sort are described in search.proto.
class SearchService final : public Service {
 public:
  explicit SearchService(const Context& context);
  /// Returns experiments with their best trials, paged, 100 by default. Errors: kInvalidArgument for an
  /// invalid filter or sort key.
  Status SearchExperiments(const Caller& caller, const v1::SearchExperimentsRequest& request,
                           v1::SearchExperimentsResponse* response);
};

}  // namespace det::api
