#include "harness/src/client/cluster_channel.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>

#include <stdexcept>

#include "common/client/channel.h"

namespace det {
namespace {

/// Keep-alive interval. Servers by default reject pings more often than every five minutes without data.
constexpr int kKeepaliveMs = 330'000, kKeepaliveTimeoutMs = 20'000;

}  // namespace

std::shared_ptr<grpc::Channel> make_channel(const ClusterAddress& address) {
  // This reference is never released: gRPC's shutdown polls with sleeps of milliseconds, which would delay
  // the end of every trial.
  static const bool held = (grpc_init(), true);
  static_cast<void>(held);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstConnectMs);
  // Limit for one connection attempt: a TLS handshake takes several round trips.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMaxConnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxConnectMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  MasterTrust trust = trust_from_environment(address.master);
  if (!address.cert_file.empty()) trust.cert_file = address.cert_file;
  auto credentials = channel_credentials(trust, arguments);
  if (!credentials) throw std::runtime_error("DET_MASTER_CERT_FILE: " + credentials.error().message);
  return grpc::CreateCustomChannel(without_scheme(address.master), *credentials, arguments);
}

void add_credentials(grpc::ClientContext& context, const ClusterAddress& address) {
  if (address.user_token.empty()) {
    context.AddMetadata("x-allocation-token", "Bearer " + address.session_token);
  } else {
    context.AddMetadata("authorization", "Bearer " + address.user_token);
  }
}

}  // namespace det
