// Owns the border between det::Error and grpc::Status.
#pragma once

#include <grpcpp/support/status.h>

#include "base/result.h"

namespace det::api {

/// Problems travel as google.rpc.Status with det.v1.Problems in the details, cut so that all of it fits into
/// gRPC's 8 KiB of metadata (clients that ask for no more than the default lose nothing else).
grpc::Status to_grpc(const Error& error);
grpc::Status to_grpc(const Status& status);

}  // namespace det::api
