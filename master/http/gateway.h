// JSON gateway of the gRPC services: finds the method by its HTTP options, converts JSON to protobuf, calls
// the server in this process and converts the reply. The URL, field and error conventions are those of
// Determined AI. Only AuthService is known by name.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "master/http/message.h"
#include "master/loop/budget.h"
#include "master/loop/workers.h"

namespace det::http {

/// Limits of requests.
struct GatewayLimits {
  /// Body size of callers that are not known before the body is read.
  std::int64_t small_body_bytes = 64 << 10;
  /// Body size of most requests.
  std::int64_t body_bytes = 1 << 20;
  /// Body size of POST /api/v1/experiments and /api/v1/commands: a 96 MiB code archive in base64.
  std::int64_t archive_body_bytes = 130LL << 20;
  /// Nesting of JSON bodies.
  int json_depth = 32;
  /// Send the session cookie over TLS only.
  bool secure_cookie = false;
};

/// Sender of a request with an unread body.
struct Entrance {
  std::string method;            ///< path of the RPC
  std::string authorization;     ///< "Bearer TOKEN", from the header or the session cookie; "" without
  std::string allocation_token;  ///< as sent, with "Bearer "
  std::string address;           ///< of the client
  bool large = false;            ///< the body may exceed GatewayLimits::small_body_bytes
};
/// Identifies a sender and calls `done` once, on any thread: with the error that answers the request; with a
/// reservation that grows with the body; or with null when the body must be small.
using Admit = std::function<void(const Entrance& entrance,
                                 std::function<void(Result<std::shared_ptr<loop::Budget::Lease>>)> done)>;

/// Thread-safe. Calls run on gRPC's threads and on `workers`.
class Gateway {
 public:
  /// `channel` leads to the server in this process, which trusts the client address that the gateway sends.
  /// `workers` run the JSON conversion and must outlive all calls.
  Gateway(std::shared_ptr<grpc::Channel> channel,
          const std::vector<const google::protobuf::ServiceDescriptor*>& services, loop::Workers& workers,
          Admit admit, const GatewayLimits& limits = {});
  ~Gateway();
  /// Blocks until no call is in flight and nothing that a call holds is in use. Returns false when some
  /// remain after `patience`. Call it after the last request, when the server has stopped.
  bool drain(Duration patience);

  /// Handler::admit for a request to `path`: the path of the request, or the one that serves it. Bodies of
  /// paths without a route must be small.
  void admit(const Request& request, const std::string& path, std::int64_t bytes,
             std::function<void(Admission)> done) const;
  /// Serves a request below /api/v1. Returns immediately; 503 when the workers are busy.
  void handle(Request request, const std::shared_ptr<Exchange>& exchange) const;

  /// Calls `done`, on any thread, with success when the request carries a valid session.
  void check_session(const Request& request, std::function<void(Status)> done) const;
  /// Objects for a visibility query.
  struct Subjects {
    std::set<std::int64_t> experiments;
    std::set<std::string> tasks;
  };
  /// The visible ones among the queried objects. Unset: the caller may see everything, now and in future.
  using Visible = std::optional<Subjects>;
  /// Queries what the caller of `request` may see and calls `done` on any thread.
  void visible(const Request& request, const Subjects& asked,
               std::function<void(Result<Visible>)> done) const;
  /// Fields of a request message, numbers as text.
  using Fields = std::vector<std::pair<std::string, std::string>>;
  /// Sends the `chunk` fields of a streaming call as a download with the headers of `head`. An error before
  /// the first chunk becomes an error reply; a later one breaks the download off.
  void download(const Request& request, const std::string& rpc, const Fields& fields, Response head,
                std::shared_ptr<Exchange> exchange) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Error reply: {"error":{"code":5,"reason":"NotFound","error":"…","details":[…]}} with the status of
/// http_status().
Response error_response(const Error& error);

}  // namespace det::http
