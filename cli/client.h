// Owns the connection to the master: one lazy channel, the user's token on every call, retries while the
// master is away, and gRPC's failures as ours.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "cli/address.h"

namespace det::cli {

/// Calls may come from several threads once the token is set.
class Client {
 public:
  explicit Client(Address address);

  const Address& address() const { return address_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  void set_token(std::string token) { token_ = std::move(token); }
  const std::string& token() const { return token_; }
  /// How long a call waits for a master that is away; a second at first.
  void set_patience(Duration patience) { patience_ = patience; }

  /// One unary call. UNAVAILABLE is tried again while patience lasts: every call of the API may be repeated.
  template <typename Stub, typename Request, typename Response>
  Result<Response> call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                        const Request& request) {
    Response response;
    TRY(retry([&] {
      grpc::ClientContext context;
      prepare(context, kUnaryTimeout);
      response.Clear();
      return (Stub(channel_).*method)(&context, request, &response);
    }));
    return response;
  }

  /// Reads a stream to its end or until `take` says no. Not retried: the caller knows where to go on.
  template <typename Stub, typename Request, typename Response, typename Take>
  Status stream(std::unique_ptr<grpc::ClientReader<Response>> (Stub::*method)(grpc::ClientContext*,
                                                                              const Request&),
                const Request& request, const Take& take) {
    grpc::ClientContext context;
    prepare(context, Duration(0));
    Stub stub(channel_);
    const auto reader = (stub.*method)(&context, request);
    Response response;
    bool stopped = false;
    while (!stopped && reader->Read(&response)) stopped = !take(response);
    if (stopped) context.TryCancel();
    const grpc::Status status = reader->Finish();
    if (stopped) return {};
    return to_status(status);
  }

  /// Calls `attempt` again while it says UNAVAILABLE and patience lasts.
  Status retry(const std::function<grpc::Status()>& attempt);
  /// Token and, unless `timeout` is 0, deadline.
  void prepare(grpc::ClientContext& context, Duration timeout) const;
  /// Waits for the channel to be connected again, as long as patience lasts.
  bool reconnect();
  /// The failure, with the problems of a refused document and the mend for what a user can mend.
  Status to_status(const grpc::Status& status) const;

  static constexpr Duration kUnaryTimeout = std::chrono::seconds(60);

 private:
  const Address address_;
  std::shared_ptr<grpc::Channel> channel_;
  std::string token_;
  Duration patience_ = std::chrono::seconds(1);
};

}  // namespace det::cli
