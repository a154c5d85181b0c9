// Owns UsageService: who held slots, and for how long.
#pragma once

#include "det/v1/usage.pb.h"
#include "master/api/service.h"

namespace det::api {

class UsageService final : public Service {
 public:
  explicit UsageService(const Context& context);
  Status ResourceAllocationRaw(const Caller& caller, const v1::ResourceAllocationRawRequest& request,
                               v1::ResourceAllocationRawResponse* response);
  Status ResourceAllocationAggregated(const Caller& caller,
                                      const v1::ResourceAllocationAggregatedRequest& request,
                                      v1::ResourceAllocationAggregatedResponse* response);
};

}  // namespace det::api
