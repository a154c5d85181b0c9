// Parsing helpers for requests.
#include "master/http/message.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/base/text.h"

namespace det::http {
namespace {

/// Guards against response splitting.
bool is_header_value(std::string_view text) {
  for (const char c : text) {
    if (c == '\r' || c == '\n' || c == '\0') return false;
  }
  return true;
}

}  // namespace

std::string_view Request::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string_view Request::cookie(std::string_view name) const {
  // The header holds name=value pairs separated by semicolons.
  std::string_view rest = header("cookie");
  while (!rest.empty()) {
    const std::size_t semicolon = rest.find(';');
    const std::string_view pair = trim(rest.substr(0, semicolon));
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) return pair.substr(equals + 1);
    if (semicolon == std::string_view::npos) break;
    rest.remove_prefix(semicolon + 1);
  }
  return {};
}

bool Request::accepts_gzip() const {
  // Any quality value except 0 accepts gzip.
  for (const std::string& item : split(header("accept-encoding"), ',')) {
    const auto pieces = split(trim(item), ';');
    if (to_lower(trim(pieces[0])) != "gzip") continue;
    return pieces.size() < 2 || (trim(pieces[1]) != "q=0" && trim(pieces[1]) != "q=0.0");
  }
  return false;
}

std::string_view status_text(int status) {
  switch (status) {
    // Only the codes that the master sends.
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 101:
      return "Switching Protocols";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

// Overrides keep what they get.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void Exchange::upgrade(Response, Received, std::function<void()>) {
  respond(message_response(501, "this connection cannot be upgraded"));
}

std::string head_text(const Response& response, bool keep_alive, bool chunked, bool bodiless) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " +
                     std::string(status_text(response.status)) + "\r\n";
  for (const auto& [name, value] : response.headers) {
    if (is_header_value(value)) text += name + ": " + value + "\r\n";
  }
  if (chunked) {
    text += "Transfer-Encoding: chunked\r\n";
  } else if (!bodiless) {
    text += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  }
  text += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return text;
}

std::string upgrade_text(const Response& response) {
  std::string text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
  for (const auto& [name, value] : response.headers) {
    if (is_header_value(value)) text += name + ": " + value + "\r\n";
  }
  return text + "\r\n";
}

std::string chunk_text(const std::string& piece) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
  return size + piece + "\r\n";
}

Response message_response(int status, std::string_view message) {
  return {status,
          {{"Content-Type", "application/json"}},
          dump_json(Json{{"message", std::string(message)}}) + "\n"};
}

bool percent_decode(std::string_view text, std::string& out) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return false;
    const int high = digit(text[i + 1]), low = digit(text[i + 2]);
    if (high < 0 || low < 0) return false;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  // Reject what protobuf and PostgreSQL cannot represent as text.
  return out.find('\0') == std::string::npos && !find_bad_utf8(out);
}

}  // namespace det::http
