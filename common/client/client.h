// gRPC client of the CLI: one lazy channel, the login token on every call, retries while the master is
// unreachable, and gRPC statuses mapped to det::Error.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/client/address.h"
#include "common/client/calls.h"

namespace det::cli {

/// Connection to one master. The constructor does not block: the channel connects on the first call. Calls
/// are thread-safe once the token and the patience are set.
class Client {
 public:
  explicit Client(Address address);

  const Address& address() const { return address_; }
  /// For streams to the master and both ways.
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  /// Sent as "authorization: Bearer <token>" with every call. Empty by default: nothing is sent.
  void set_token(std::string token) { token_ = std::move(token); }
  const std::string& token() const { return token_; }
  /// Maximum time to wait for an unreachable master. Default: 1 s.
  void set_patience(Duration patience) { patience_ = patience; }

  /// Makes a unary call with a deadline of kUnaryTimeout for each attempt. Retries UNAVAILABLE while the
  /// patience lasts: every RPC of the API is safe to repeat. Errors: those of to_status().
  template <typename Request, typename Response>
  Result<Response> call(UnaryMethod<Request, Response> method, const Request& request) {
    Response response;
    TRY(call_path(method.path, request, response));
    return response;
  }

  /// Reads a server stream and calls `take(message)` for each message, until the stream ends or `take`
  /// returns false. Succeeds in both cases. Errors: those of to_status(). No deadline. Not retried: only the
  /// caller has the position to resume from.
  template <typename Request, typename Response, typename Take>
  Status stream(ServerStreamMethod<Request, Response> method, const Request& request, const Take& take) {
    grpc::ClientContext context;
    prepare(context, Duration(0));
    const auto reader = wire::open(channel_, method, context, request);
    Response response;
    bool stopped = false;
    while (!stopped && reader->Read(&response)) stopped = !take(response);
    if (stopped) context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (stopped) return {};
    return to_status(status);
  }

  /// Repeats `attempt` while it returns UNAVAILABLE and the patience lasts. Returns the last attempt's
  /// to_status(). Callers use it for client-streaming uploads.
  Status retry(const std::function<grpc::Status()>& attempt);
  /// Adds the token to `context` and, unless `timeout` is 0, a deadline.
  void prepare(grpc::ClientContext& context, Duration timeout) const;
  /// Blocks until the channel is connected. Returns false when the patience ends first.
  bool reconnect();
  /// Converts a gRPC status. The error carries the problems of a rejected document (det.v1.Problems in the
  /// status details). Its message names a remedy for an unreachable master and an expired login.
  Status to_status(const grpc::Status& status) const;

  /// Deadline of one attempt of a unary call.
  static constexpr Duration kUnaryTimeout = std::chrono::seconds(60);

 private:
  Status call_path(const char* path, const google::protobuf::MessageLite& request,
                   google::protobuf::MessageLite& response);

  const Address address_;
  std::shared_ptr<grpc::Channel> channel_;
  std::string token_;
  Duration patience_ = std::chrono::seconds(1);
};

}  // namespace det::cli
