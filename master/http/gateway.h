// Owns the JSON face of the gRPC services: finds the call by method options, JSON → protobuf, calls the
// server in process, protobuf → JSON. Knows no service by name but AuthService. Conventions:
// determined-0.38 §6.1.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "master/http/message.h"
#include "master/loop/workers.h"

namespace det::http {

struct GatewayLimits {
  std::int64_t body_bytes = 1 << 20;
  std::int64_t context_body_bytes = 130LL << 20;  ///< POST /api/v1/experiments: a 96 MiB context in base64
  int json_depth = 32;
  bool secure_cookie = false;  ///< the session's cookie travels over TLS alone
};

class Gateway {
 public:
  /// `channel` leads to the server in this process, which believes what the gateway says of the client's
  /// address. `workers` do the JSON work and must outlive the gateway's calls.
  Gateway(std::shared_ptr<grpc::Channel> channel,
          const std::vector<const google::protobuf::ServiceDescriptor*>& services, loop::Workers& workers,
          const GatewayLimits& limits = {});
  ~Gateway();
  /// Waits until no call is under way, nor anything that one holds; false when some still are after
  /// `patience`. When no more requests come and the server has stopped.
  bool drain(Duration patience);

  std::int64_t body_limit(const Request& request) const;
  /// For paths below /api/v1.
  void handle(Request request, std::shared_ptr<Exchange> exchange) const;

  /// Calls `done` (on some thread) with success when the request carries a valid session.
  void check_session(const Request& request, std::function<void(Status)> done) const;
  /// What changes are of.
  struct Subjects {
    std::set<std::int64_t> experiments;
    std::set<std::string> tasks;
  };
  /// Which of these the request's caller may see; nothing: whatever there is, now and later.
  using Visible = std::optional<Subjects>;
  void visible(const Request& request, const Subjects& asked,
               std::function<void(Result<Visible>)> done) const;
  /// Streams the `chunk` fields of a call's answers as a download with `head`; errors before the first chunk
  /// become an error answer.
  void download(const Request& request, const std::string& rpc, const std::string& field,
                const std::string& value, Response head, std::shared_ptr<Exchange> exchange) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// {"error":{"code":5,"reason":"NotFound","error":"…","details":[…]}} with the status of http_status.
Response error_response(const Error& error);

}  // namespace det::http
