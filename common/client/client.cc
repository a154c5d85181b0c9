#include "common/client/client.h"

#include <grpcpp/create_channel.h>

#include <cstdlib>

#include "common/client/channel.h"
#include "common/client/trust.h"
#include "common/crypto/tls_probe.h"
#include "det/status.pb.h"
#include "det/v1/common.pb.h"

namespace det::cli {
namespace {

/// Limit of one response message.
constexpr int kMaxResponseBytes = 64 << 20;
/// Timeout of the TLS probe that improves the error message of a failed connection.
constexpr Duration kProbe = std::chrono::seconds(2);

/// ClientContext::set_deadline() takes a time of the system clock.
std::chrono::system_clock::time_point deadline_in(Duration duration) {
  return std::chrono::system_clock::time_point(std::chrono::microseconds(wall_now().micros) + duration);
}

std::shared_ptr<grpc::Channel> open_channel(const Address& address) {
  // gRPC's own log lines mean nothing to users. A value from the environment is kept for debugging.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxResponseBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // The timeout of one connection attempt, which takes several round trips to a master that may be busy.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // An http_proxy for the Internet must not capture connections to the cluster.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  auto credentials = channel_credentials(known_trust(address), arguments);
  // The certificate file may have been removed since establish_trust() read it. Fail closed: trust nothing.
  if (!credentials) credentials = grpc::SslCredentials({.pem_root_certs = "none"});
  return grpc::CreateCustomChannel(address.target(), *credentials, arguments);
}

/// Returns the cause from gRPC's "failed to connect to all addresses; last error: …: Connection refused".
std::string last_part(const std::string& message) {
  const std::size_t at = message.rfind(": ");
  return at == std::string::npos ? message : message.substr(at + 2);
}

/// Returns the error message for a master that does not respond: the cause and a remedy.
std::string unreachable(const Address& address, const std::string& why) {
  const auto says = [&](const char* what) { return why.find(what) != std::string::npos; };
  // A TLS-only master closes a plain connection, and gRPC reports just that. The probe finds the real cause.
  if (!address.tls && probe_tls(address.host, address.port, address.host, "", kProbe))
    return "the master at " + address.url() + " speaks TLS only; name it as https://" + address.target();
  if (says("certificate verify failed") || says("Hostname Verification") || says("Peer name")) {
    const std::string file = known_trust(address).cert_file;
    return "the certificate of the master at " + address.url() + " is not the one that is trusted" +
           (file.empty()
                ? ""
                : " (" + file + "); if it was changed on purpose, remove that file and log in again");
  }
  return "cannot reach the master at " + address.url() + " (" + last_part(why) +
         "); is it running? Name another with -m or DET_MASTER";
}

/// Decodes the problems of a rejected document from google.rpc.Status.
std::vector<Problem> problems_of(const std::string& details) {
  google::rpc::Status status;
  std::vector<Problem> problems;
  if (!status.ParseFromString(details)) return problems;
  for (const auto& detail : status.details()) {
    v1::Problems list;
    if (!detail.UnpackTo(&list)) continue;
    for (const v1::Problem& problem : list.problems())
      problems.push_back({problem.code(), problem.path(), problem.message(), problem.file(), problem.line(),
                          problem.column()});
  }
  return problems;
}

}  // namespace

Client::Client(Address address) : address_(std::move(address)), channel_(open_channel(address_)) {}

void Client::prepare(grpc::ClientContext& context, Duration timeout) const {
  if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
  if (timeout.count() > 0) context.set_deadline(deadline_in(timeout));
}

Status Client::call_path(const char* path, const google::protobuf::MessageLite& request,
                         google::protobuf::MessageLite& response) {
  return retry([&] {
    grpc::ClientContext context;
    prepare(context, kUnaryTimeout);
    response.Clear();
    return wire::call_path(channel_, path, context, request, response);
  });
}

bool Client::reconnect() { return channel_->WaitForConnected(deadline_in(patience_)); }

Status Client::retry(const std::function<grpc::Status()>& attempt) {
  const MonoTime end = mono_now() + patience_;
  for (;;) {
    const grpc::Status status = attempt();
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return to_status(status);
    // The master may be reachable and still return UNAVAILABLE, while it starts or stops. The wait for a
    // state change, at most 100 ms, prevents a busy loop.
    if (end < mono_now() || !reconnect()) return to_status(status);
    channel_->WaitForStateChange(GRPC_CHANNEL_READY, deadline_in(std::chrono::milliseconds(100)));
  }
}

Status Client::to_status(const grpc::Status& status) const {
  if (status.ok()) return {};
  Error error{static_cast<Code>(status.error_code()), status.error_message(),
              problems_of(status.error_details())};
  if (error.code == Code::kUnavailable) {
    error.message = unreachable(address_, error.message);
  } else if (error.message.starts_with("Received http2 header with status")) {
    error.message = "the server at " + address_.url() + " is no master (HTTP status " +
                    last_part(error.message) + "); name another with -m or DET_MASTER";
  } else if (error.code == Code::kDeadlineExceeded) {
    error.message = "the master at " + address_.url() + " did not answer in time; try again";
  } else if (error.code == Code::kUnauthenticated && !token_.empty()) {
    // A token was sent and rejected: it has expired or was revoked.
    error.message += "; run `det user login`";
  }
  return tl::unexpected(std::move(error));
}

}  // namespace det::cli
