// HTTP requests and replies inside the master, independent of any HTTP library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "master/loop/budget.h"

namespace det::http {

/// Name and value pairs in order.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// One HTTP request.
struct Request {
  std::string method;  ///< Such as "GET".
  std::string path;    ///< As sent, percent-encoded: from '/' up to '?'.
  std::string query;   ///< As sent: behind '?'.
  Headers headers;     ///< Names in lower case.
  std::string body;
  /// Address of the client, without port.
  std::string peer;
  /// Reservation of the body's memory; null for a small body. It ends with the last copy.
  std::shared_ptr<loop::Budget::Lease> memory;

  /// Value of the first header with this lower-case name; "" when absent.
  std::string_view header(std::string_view name) const;
  /// Value of a cookie; "" when absent.
  std::string_view cookie(std::string_view name) const;
  /// True if the client decodes gzip.
  bool accepts_gzip() const;
};

/// One HTTP reply, or the head of a streamed one.
struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

/// The reply to one request: either respond(), or begin(), any number of write() and end(). Thread-safe.
/// Destroying it without a reply sends status 500; destroying it after begin() breaks the reply off.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Sends a complete reply.
  virtual void respond(Response response) = 0;
  /// Starts a reply of unknown length. `closed` is called at most once, if the client disconnects before
  /// end(), and at once for HEAD, whose reply has the header only: write() then fails.
  virtual void begin(Response head, std::function<void()> closed) = 0;
  /// Sends a piece of the body. Calls done(true) when it has been handed to the kernel (send the next one
  /// then), done(false) when the client has disconnected.
  virtual void write(std::string piece, std::function<void(bool)> done) = 0;
  /// Completes a reply started with begin() or upgrade().
  virtual void end() = 0;
  /// Bytes of the client after upgrade(). The next ones are read when `resume` has been called.
  using Received = std::function<void(std::string bytes, std::function<void()> resume)>;
  /// Replies 101 to a request with the header Upgrade. From then on the connection carries bytes: write()
  /// sends them as they are. `closed` as for begin(). Replies 501 where connections cannot be upgraded.
  virtual void upgrade(Response head, Received received, std::function<void()> closed);
};

/// Decision about a request with an unread body.
struct Admission {
  /// Set: the reply to the request. Its body is not read.
  std::optional<Response> refusal;
  /// Maximum size of the body, in bytes.
  std::int64_t body_bytes = 0;
  /// Grows as the body arrives; a refusal to grow ends the request. Null: the size is the only limit.
  std::shared_ptr<loop::Budget::Lease> memory;
};

/// Handles the requests of a server. Called on its I/O thread: must not block.
struct Handler {
  /// Decides about a request with a body of `bytes` (unknown: the maximum of the type), after its header.
  /// Calls `done` once, at any time and from any thread.
  std::function<void(const Request& request, std::int64_t bytes, std::function<void(Admission)> done)> admit;
  /// Handles one request and replies through `exchange`, at any time and from any thread.
  std::function<void(Request request, std::shared_ptr<Exchange> exchange)> handle;
};

/// Reason phrase of a status code, "Status" for an unknown one.
std::string_view status_text(int status);
/// Reply for routes outside the API, in the form that Determined AI uses: {"message": "…"}.
Response message_response(int status, std::string_view message);
/// Status line and header of a reply on HTTP/1.1, with the empty line. `bodiless`: no Content-Length.
std::string head_text(const Response& response, bool keep_alive, bool chunked, bool bodiless);
/// Status line and header of a reply 101 to a request with `Upgrade: websocket`.
std::string upgrade_text(const Response& response);
/// A piece of a chunked body.
std::string chunk_text(const std::string& piece);
/// Percent-decodes `text` once ('+' is kept). Returns false when it is malformed or the result has NUL or
/// invalid UTF-8.
bool percent_decode(std::string_view text, std::string& out);

}  // namespace det::http
