// The report of a damaged checkpoint. Part of libdet_cluster.so.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>

#include "common/base/event.h"
#include "common/base/text.h"
#include "common/client/calls.h"
#include "det/v1/harness.methods.h"
#include "harness/src/client/client.h"
#include "harness/src/client/cluster_channel.h"

namespace det {
namespace {

/// Requests an alternative checkpoint from the master. Retries with back-off while the master is unreachable;
/// other errors are returned.
Result<std::string> fall_back(const ClusterAddress& address, const std::string& uuid,
                              const std::string& reason) {
  const auto channel = make_channel(address);
  v1::FallBackRequest request;
  request.set_allocation_id(address.allocation_id);
  request.set_checkpoint_uuid(uuid);
  request.set_reason(make_utf8(reason.substr(0, kMaxMessage)));
  for (int wait_ms = kFirstConnectMs;; wait_ms = std::min(2 * wait_ms, kMaxConnectMs)) {
    grpc::ClientContext context;
    context.AddMetadata("x-allocation-token", "Bearer " + address.session_token);
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(60, GPR_TIMESPAN)));
    v1::FallBackResponse response;
    const grpc::Status status = wire::call(channel, v1::HarnessService::FallBack, context, request, response);
    if (status.ok()) return response.checkpoint_uuid();
    const bool may_pass = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                          status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                          status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
    if (!may_pass) return fail(static_cast<Code>(status.error_code()), status.error_message());
    (void)Event().wait_for(std::chrono::milliseconds(wait_ms));
  }
}

}  // namespace
}  // namespace det

extern "C" void det_fall_back(const det::ClusterAddress* address, const std::string* uuid,
                              const std::string* reason, det::Result<std::string>* instead) {
  *instead = det::fall_back(*address, *uuid, *reason);
}
