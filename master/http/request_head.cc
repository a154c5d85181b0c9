#include "master/http/request_head.h"

#include "common/base/text.h"

namespace det::http {

namespace http = boost::beast::http;

const char* header_problem(const RequestHead& head) {
  if (head.version() != 10 && head.version() != 11) return "unknown HTTP version";
  if (head.count(http::field::host) != 1) return "exactly one Host header is needed";
  const auto codings = head.count(http::field::transfer_encoding);
  // Both framing headers together, or unusual codings, enable request smuggling.
  if (codings > 0) {
    if (head.version() < 11) return "Transfer-Encoding needs HTTP/1.1";
    if (codings > 1 || to_lower(std::string(head[http::field::transfer_encoding])) != "chunked")
      return "the only Transfer-Encoding taken is chunked";
    if (head.count(http::field::content_length) > 0) return "Content-Length beside Transfer-Encoding";
  }
  if (head.target().empty() || head.target().front() != '/') return "the target must start with /";
  for (const char c : head.target()) {
    if (c <= ' ' || c == 0x7f || c == '#' || c == '\\') return "malformed target";
  }
  return nullptr;
}

Request to_request(const RequestHead& head, const std::string& peer) {
  Request request;
  request.method = std::string(head.method_string());
  const std::string target(head.target());
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != target.npos) request.query = target.substr(question + 1);
  for (const auto& field : head)
    request.headers.emplace_back(to_lower(std::string(field.name_string())), std::string(field.value()));
  request.peer = peer;
  return request;
}

}  // namespace det::http
