// UsageService: use of slots over time, by user, experiment, label and pool.
#pragma once

#include "det/v1/usage.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Only allocations that the caller may see are included. Capacity is that of the whole cluster.
class UsageService final : public Service {
 public:
  explicit UsageService(const Context& context);
  /// Lists allocations that held slots in a time range, and the capacity of agents. Times are cut to the
  /// range; live allocations count until now. Errors: kInvalidArgument.
  Status ResourceAllocationRaw(const Caller& caller, const v1::ResourceAllocationRawRequest& request,
                               v1::ResourceAllocationRawResponse* response);
  /// Sums slot-seconds by day (UTC, at most 1,100) or month (over at most ten years). Errors:
  /// kInvalidArgument.
  Status ResourceAllocationAggregated(const Caller& caller,
                                      const v1::ResourceAllocationAggregatedRequest& request,
                                      v1::ResourceAllocationAggregatedResponse* response);
};

}  // namespace det::api
