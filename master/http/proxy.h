// Proxy to ports of tasks: HTTP and WebSocket requests to /proxy/TASK[:PORT]/. Each request has a tunnel of
// its own (TaskService.Connect), so the access of its sender is checked each time. A WebSocket without a
// login may reach the SSH server of a shell only (TaskService.ConnectSsh).
#pragma once

#include <grpcpp/channel.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "master/http/calls.h"
#include "master/http/gateway.h"
#include "master/http/message.h"
#include "master/http/proxy_head.h"

namespace det::http {

/// The pages of a task are written by its owner, so they must not act with the rights of their viewers. A
/// page gets an opaque origin (Content-Security-Policy: sandbox), to which the session cookie is never sent.
/// Its requests carry a ticket in their path, which opens one port of one task only.
///
/// Belongs to the HTTP thread.
class Proxy {
 public:
  /// Queues a function for the HTTP thread. Any thread.
  using Post = std::function<void(std::function<void()>)>;
  /// `channel` as for Gateway. `tls`: clients reach the master over TLS. `shell_ssh`: without a login, SSH
  /// servers of shells are reached.
  Proxy(std::shared_ptr<grpc::Channel> channel, Admit admit, Post post, bool tls, bool shell_ssh);

  /// Handler::admit for a path below /proxy/.
  void admit(const Request& request, std::int64_t bytes, std::function<void(Admission)> done);
  /// Handler::handle for a path below /proxy/.
  void handle(Request request, const std::shared_ptr<Exchange>& exchange);
  /// As Gateway::drain().
  bool drain(Duration patience) { return calls_->drain(patience); }

 private:
  struct Ticket {
    std::string service, authorization;
    MonoTime expires;
  };
  /// Returns "Bearer TOKEN" of the sender; "" without one.
  std::string authorization_of(const Request& request, const ProxyPath& path) const;
  /// `owner`: cell of the budget that the user has. A new ticket beyond the limit takes the place of the
  /// oldest one of the same owner.
  std::string issue_ticket(const std::string& service, const std::string& authorization, std::size_t owner);
  /// Redirects a page that was opened with the session cookie to its address with a ticket, after the cookie
  /// has been checked.
  void open_page(const ProxyPath& path, const std::string& authorization, const Request& request,
                 const std::shared_ptr<Exchange>& exchange);

  const std::shared_ptr<grpc::Channel> channel_;
  const Admit admit_;
  const Post post_;
  const bool tls_, shell_ssh_;
  const std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
  std::map<std::string, Ticket> tickets_;
  std::map<std::size_t, std::deque<std::string>> oldest_tickets_;  ///< by owner, the oldest first
};

}  // namespace det::http
