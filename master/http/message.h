// Owns what an HTTP request and its answer are inside the master, free of any HTTP library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace det::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;  ///< "GET"
  std::string path;    ///< as sent, percent-encoded, from '/' up to '?'
  std::string query;   ///< as sent, behind '?'
  Headers headers;     ///< names in lower case
  std::string body;
  std::string peer;  ///< the client's address without port

  /// The value of the first header of this (lower-case) name; "" when absent.
  std::string_view header(std::string_view name) const;
  /// The value of a cookie; "" when absent.
  std::string_view cookie(std::string_view name) const;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

/// The one answer to one request: either respond(), or begin(), any number of write()s and end(). May be
/// called from any thread. Letting the last reference go without an answer sends 500, or breaks a begun
/// answer off.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void respond(Response response) = 0;
  /// Starts an answer of unknown length; `closed` is called at most once, when the client is gone before
  /// end().
  virtual void begin(Response head, std::function<void()> closed) = 0;
  /// `done(true)` when the piece is with the kernel (send the next one then), `done(false)` when the client
  /// is gone.
  virtual void write(std::string piece, std::function<void(bool)> done) = 0;
  virtual void end() = 0;
};

/// Answers requests. Called on the server's I/O thread: must not block.
struct Handler {
  /// The most bytes of body this request may carry; `request` has no body yet.
  std::function<std::int64_t(const Request& request)> body_limit;
  std::function<void(Request request, std::shared_ptr<Exchange> exchange)> handle;
};

std::string_view status_text(int status);
/// An answer in upstream's form for routes outside the API: {"message": "…"}.
Response message_response(int status, std::string_view message);
/// Percent-decodes once ('+' stays); false when it is malformed, or holds NUL or ill-formed UTF-8.
bool percent_decode(std::string_view text, std::string& out);

}  // namespace det::http
