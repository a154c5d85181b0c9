// Headers of proxied requests and replies: what a task may learn of its users, and what its replies may do to
// a browser. Pure, except for the parser of replies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "master/http/message.h"

namespace det::http {

/// Parts of a path below /proxy/.
struct ProxyPath {
  std::string service;  ///< TASK or TASK:PORT
  std::string task;
  int port = 0;        ///< 0: the default port of the task
  std::string ticket;  ///< of a browser; "" without
  std::string rest;    ///< from '/'; "" if the path ends with the service
  /// The path without `rest`, as the browser has it.
  std::string prefix() const;
};
/// Parses "/proxy/TASK[:PORT][/~TICKET][/REST]". Errors: kNotFound.
Result<ProxyPath> parse_proxy_path(std::string_view path);

/// Returns the header of a request as the task gets it, with the empty line. Credentials of the platform,
/// Origin, Referer and headers of the connection are left out. `strip_prefix`: the path begins after the
/// service.
std::string forwarded_head(const Request& request, const ProxyPath& path, int port, bool strip_prefix,
                           bool tls);

/// True if the request asks for a WebSocket.
bool is_websocket(const Request& request);

/// Changes the header of a task's reply for the browser: the reply becomes a sandboxed document of an origin
/// of its own, its cookies are limited to the task, redirections stay below the task, and headers that
/// concern the whole host are removed.
void confine_reply(Response& reply, const ProxyPath& path, int port, bool strip_prefix);

/// Parser of one reply. Not thread-safe.
class ReplyReader {
 public:
  /// `head_request`: the reply has no body.
  explicit ReplyReader(bool head_request);
  ~ReplyReader();
  /// Adds bytes of the task and appends the decoded body to `body`. Errors: kUnavailable for a malformed
  /// reply and for a header above 64 KiB.
  Status feed(std::string_view bytes, std::string& body);
  /// The task has closed the connection. Errors: kUnavailable if the reply is incomplete.
  Status close();
  /// The header once it is complete, without headers of the connection. Null before.
  const Response* head() const;
  /// True if the reply is complete; for 101, if its header is.
  bool done() const;
  /// Bytes behind the header of a reply 101.
  std::string take_rest();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace det::http
