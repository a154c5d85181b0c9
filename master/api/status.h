// Conversion of det::Error to grpc::Status, and errors that many handlers return.
#pragma once

#include <grpcpp/support/status.h>

#include "common/base/result.h"

namespace det::api {

/// Problems are sent as google.rpc.Status with det.v1.Problems in its details. The list is cut to fit into 8
/// KiB, the default limit of gRPC for metadata. Logs kInternal and kUnknown. Any thread.
grpc::Status to_grpc(const Error& error);
/// OK, or the converted error.
grpc::Status to_grpc(const Status& status);

/// kUnavailable: a queue of the master is full.
Error busy();
/// kUnavailable: the master stops.
Error shutting_down();

}  // namespace det::api
