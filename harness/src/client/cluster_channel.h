// Connection of a training process to its master. Used by libdet_cluster.so only.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>

#include "harness/src/client/client.h"

namespace det {

/// Shortest and longest back-off between connection attempts, in milliseconds. The longest is also the limit
/// of one attempt.
inline constexpr int kFirstConnectMs = 100, kMaxConnectMs = 5000;
/// Bytes of a message for display.
inline constexpr std::size_t kMaxMessage = 1000;

/// Returns a channel; connects at its first use. Throws std::runtime_error for a certificate that cannot be
/// read.
std::shared_ptr<grpc::Channel> make_channel(const ClusterAddress& address);
/// Adds the token of the allocation, or of the owner of a detached trial.
void add_credentials(grpc::ClientContext& context, const ClusterAddress& address);

}  // namespace det
