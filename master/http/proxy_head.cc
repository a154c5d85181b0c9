#include "master/http/proxy_head.h"

#include <algorithm>
#include <array>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <charconv>
#include <limits>

#include "common/base/text.h"

namespace det::http {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::string_view kTop = "/proxy/";
constexpr std::size_t kMaxReplyHead = 64 << 10;
constexpr std::size_t kPiece = 64 << 10;
// Without allow-same-origin the page has an origin of its own: it can neither read nor use what the browser
// stores for the master.
constexpr const char* kSandbox =
    "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";

// Headers between two neighbors (RFC 9110, section 7.6.1).
constexpr std::array<std::string_view, 9> kOfConnection{"connection",
                                                        "keep-alive",
                                                        "proxy-authenticate",
                                                        "proxy-authorization",
                                                        "proxy-connection",
                                                        "te",
                                                        "trailer",
                                                        "transfer-encoding",
                                                        "upgrade"};
// Requests: credentials of the platform, and what would tell the task a ticket or the master's origin.
constexpr std::array<std::string_view, 11> kKept{
    "authorization", "x-user-token", "x-allocation-token", "x-agent-token", "cookie",   "host",
    "origin",        "referer",      "content-length",     "expect",        "forwarded"};
// Replies: what would hold for the whole host.
constexpr std::array<std::string_view, 12> kOfHost{"strict-transport-security",
                                                   "clear-site-data",
                                                   "service-worker-allowed",
                                                   "alt-svc",
                                                   "nel",
                                                   "report-to",
                                                   "reporting-endpoints",
                                                   "public-key-pins",
                                                   "content-length",
                                                   "referrer-policy",
                                                   "x-content-type-options",
                                                   "cross-origin-resource-policy"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The cookies of the task: all but the session of the platform.
std::string cookies_of_task(std::string_view header) {
  std::vector<std::string> kept;
  for (const std::string& each : split(std::string(header), ';')) {
    const std::string cookie(trim(each));
    if (!cookie.empty() && cookie.substr(0, cookie.find('=')) != "auth") kept.push_back(cookie);
  }
  return join(kept, "; ");
}

/// Keeps name and value of a cookie and limits it to the task. "" for a cookie that the platform uses.
std::string confined_cookie(const std::string& cookie, const ProxyPath& path) {
  const std::string pair(trim(cookie.substr(0, cookie.find(';'))));
  const std::string name(trim(pair.substr(0, pair.find('='))));
  if (name.empty() || pair.find('=') == std::string::npos || name == "auth") return "";
  return pair + "; Path=/proxy/" + path.service + "/; HttpOnly; SameSite=Strict";
}

/// A redirection of the task, as the browser must see it.
std::string confined_location(const std::string& location, const ProxyPath& path, int port,
                              bool strip_prefix) {
  std::string target = location;
  for (const std::string& host :
       {"http://127.0.0.1:" + std::to_string(port), "http://localhost:" + std::to_string(port)})
    if (target.starts_with(host)) target = target.size() == host.size() ? "/" : target.substr(host.size());
  if (!target.starts_with("/") || target.starts_with("//")) return target;
  const std::string service = std::string(kTop) + path.service;
  if (strip_prefix) return path.prefix() + target;
  return target.starts_with(service + "/") ? path.prefix() + target.substr(service.size()) : target;
}

}  // namespace

std::string ProxyPath::prefix() const {
  return std::string(kTop) + service + (ticket.empty() ? "" : "/~" + ticket);
}

Result<ProxyPath> parse_proxy_path(std::string_view path) {
  const auto unknown =
      fail(Code::kNotFound, "the path of a task's port is /proxy/TASK/ or /proxy/TASK:PORT/");
  if (!path.starts_with(kTop)) return unknown;
  path.remove_prefix(kTop.size());
  const std::size_t slash = std::min(path.find('/'), path.size());
  ProxyPath out;
  out.service = path.substr(0, slash);
  out.rest = path.substr(slash);
  if (out.service.size() > 128 ||
      out.service.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789-.:") != std::string::npos)
    return unknown;
  const std::size_t colon = out.service.find(':');
  out.task = out.service.substr(0, colon);
  if (out.task.empty()) return unknown;
  if (colon != std::string::npos) {
    const char* const end = out.service.data() + out.service.size();
    const auto [parsed, error] = std::from_chars(out.service.data() + colon + 1, end, out.port);
    if (error != std::errc() || parsed != end || out.port < 1 || out.port > 65535) return unknown;
  }
  if (out.rest.starts_with("/~")) {
    const std::size_t end = std::min(out.rest.find('/', 2), out.rest.size());
    out.ticket = out.rest.substr(2, end - 2);
    out.rest = out.rest.substr(end);
  }
  return out;
}

bool is_websocket(const Request& request) {
  return to_lower(std::string(request.header("upgrade"))) == "websocket";
}

std::string forwarded_head(const Request& request, const ProxyPath& path, int port, bool strip_prefix,
                           bool tls) {
  const std::string rest = path.rest.empty() ? "/" : path.rest;
  std::string text = request.method + " " + (strip_prefix ? "" : std::string(kTop) + path.service) + rest;
  if (!request.query.empty()) text += "?" + request.query;
  text += " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n";
  for (const auto& [name, value] : request.headers) {
    const bool dropped = contains(kOfConnection, name) || contains(kKept, name) ||
                         name.starts_with("grpc-metadata-") || name.starts_with("x-forwarded-");
    if (!dropped) text += name + ": " + value + "\r\n";
  }
  if (const std::string cookies = cookies_of_task(request.header("cookie")); !cookies.empty())
    text += "cookie: " + cookies + "\r\n";
  text += "x-forwarded-for: " + request.peer + "\r\nx-forwarded-proto: " + (tls ? "https" : "http") +
          "\r\nx-forwarded-host: " + std::string(request.header("host")) +
          "\r\nx-forwarded-prefix: " + path.prefix() + "\r\n";
  const bool has_body = !request.body.empty() || request.method == "POST" || request.method == "PUT" ||
                        request.method == "PATCH";
  if (has_body) text += "content-length: " + std::to_string(request.body.size()) + "\r\n";
  return text + (is_websocket(request) ? "connection: Upgrade\r\nupgrade: websocket\r\n\r\n"
                                       : "connection: close\r\n\r\n");
}

void confine_reply(Response& reply, const ProxyPath& path, int port, bool strip_prefix) {
  Headers kept;
  for (auto& [name, value] : reply.headers) {
    const std::string lower = to_lower(name);
    if (contains(kOfHost, lower) || lower.starts_with("access-control-")) continue;
    if (lower == "set-cookie") value = confined_cookie(value, path);
    if (lower == "location") value = confined_location(value, path, port, strip_prefix);
    if (!value.empty()) kept.emplace_back(name, std::move(value));
  }
  kept.emplace_back("Content-Security-Policy", kSandbox);
  kept.emplace_back("Referrer-Policy", "no-referrer");
  kept.emplace_back("X-Content-Type-Options", "nosniff");
  // Requests of the page come from its own, opaque origin. They carry no cookies; the ticket in the path is
  // what authorizes them.
  if (!path.ticket.empty()) {
    kept.emplace_back("Access-Control-Allow-Origin", "*");
    kept.emplace_back("Cross-Origin-Resource-Policy", "cross-origin");
  }
  reply.headers = std::move(kept);
}

struct ReplyReader::Parts {
  http::response_parser<http::buffer_body> parser;
  std::string waiting;  ///< bytes that the parser has not taken
  std::optional<Response> head;
};

ReplyReader::ReplyReader(bool head_request) : parts_(std::make_unique<Parts>()) {
  parts_->parser.skip(head_request);
  parts_->parser.header_limit(kMaxReplyHead);
  // Beast 1.74 takes boost::none for a limit of 0.
  parts_->parser.body_limit(std::numeric_limits<std::uint64_t>::max());
}

ReplyReader::~ReplyReader() = default;

Status ReplyReader::feed(std::string_view bytes, std::string& body) {
  auto& [parser, waiting, head] = *parts_;
  waiting += bytes;
  std::array<char, kPiece> piece;
  while (!waiting.empty() && !done()) {
    parser.get().body().data = piece.data();
    parser.get().body().size = piece.size();
    parser.get().body().more = true;
    boost::system::error_code error;
    const std::size_t used = parser.put(asio::buffer(waiting), error);
    if (parser.is_header_done()) body.append(piece.data(), piece.size() - parser.get().body().size);
    waiting.erase(0, used);
    if (error == http::error::need_more) break;
    if (error && error != http::error::need_buffer)
      return fail(Code::kUnavailable, "the task sent a malformed reply: " + error.message());
    if (parser.is_header_done() && !head) {
      head.emplace();
      head->status = static_cast<int>(parser.get().result_int());
      for (const auto& field : parser.get())
        if (const std::string name(field.name_string()); !contains(kOfConnection, to_lower(name)))
          head->headers.emplace_back(name, std::string(field.value()));
      // Interim replies are for the proxy.
      if (head->status >= 100 && head->status < 200 && head->status != 101)
        return fail(Code::kUnavailable, "the task sent an interim reply");
    }
    if (used == 0 && !error) break;
  }
  return {};
}

Status ReplyReader::close() {
  boost::system::error_code error;
  if (parts_->parser.got_some() && !done()) parts_->parser.put_eof(error);
  if (done()) return {};
  return fail(Code::kUnavailable, parts_->head ? "the task broke its reply off"
                                               : "the task closed the connection without a reply");
}

const Response* ReplyReader::head() const { return parts_->head ? &*parts_->head : nullptr; }

bool ReplyReader::done() const {
  return parts_->head && (parts_->head->status == 101 || parts_->parser.is_done());
}

std::string ReplyReader::take_rest() { return std::exchange(parts_->waiting, {}); }

}  // namespace det::http
