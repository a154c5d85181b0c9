#include "cli/event_stream.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"

namespace det::cli {
namespace {

constexpr std::size_t kMostHead = 64 << 10;

int milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

Result<UniqueFd> connect_to(const Address& address) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) != 0)
    return fail(Code::kUnavailable, address.host + " has no address");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    UniqueFd socket(::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol));
    if (socket && ::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0) return socket;
  }
  return fail_errno("connect to " + address.url());
}

/// One event of lines such as "event: trial".
ChangeEvent read_event(std::string_view text) {
  ChangeEvent event;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("event:")) event.kind = trim(line.substr(6));
    if (!line.starts_with("data:")) continue;
    const auto data = parse_json(line.substr(5));
    if (data && data->is_object() && data->contains("experimentId") && (*data)["experimentId"].is_number_integer())
      event.experiment = (*data)["experimentId"].get<int>();
  }
  return event;
}

}  // namespace

Status EventParser::read_head() {
  const std::size_t end = raw_.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (raw_.size() > kMostHead) return fail(Code::kUnavailable, "the answer is not of a master");
    return {};
  }
  const std::string head = to_lower(raw_.substr(0, end + 2));
  if (!head.starts_with("http/1.1 200"))
    return fail(Code::kUnavailable, "the master's events: " + raw_.substr(0, raw_.find('\r')));
  if (head.find("\r\ncontent-type: text/event-stream") == std::string::npos)
    return fail(Code::kUnavailable, "the answer is no stream of events");
  chunked_ = head.find("\r\ntransfer-encoding: chunked\r\n") != std::string::npos;
  raw_.erase(0, end + 4);
  in_body_ = true;
  return {};
}

void EventParser::read_chunks() {
  while (!raw_.empty()) {
    if (chunk_left_ > 0) {
      const std::size_t taken = std::min(chunk_left_, raw_.size());
      body_.append(raw_, 0, taken);
      raw_.erase(0, taken);
      chunk_left_ -= taken;
      continue;
    }
    const std::size_t begin = raw_.starts_with("\r\n") ? 2 : 0, end = raw_.find("\r\n", begin);
    if (end == std::string::npos) return;
    std::size_t size = 0;
    std::from_chars(raw_.data() + begin, raw_.data() + end, size, 16);
    raw_.erase(0, end + 2);
    chunk_left_ = size;
  }
}

std::vector<ChangeEvent> EventParser::read_events() {
  std::vector<ChangeEvent> events;
  for (std::size_t end = body_.find("\n\n"); end != std::string::npos; end = body_.find("\n\n")) {
    ChangeEvent event = read_event(std::string_view(body_).substr(0, end));
    if (!event.kind.empty()) events.push_back(std::move(event));
    body_.erase(0, end + 2);
  }
  return events;
}

Result<std::vector<ChangeEvent>> EventParser::take(std::string_view bytes) {
  raw_ += bytes;
  if (!in_body_) TRY(read_head());
  if (!in_body_) return std::vector<ChangeEvent>();
  if (chunked_) {
    read_chunks();
  } else {
    body_ += std::exchange(raw_, {});
  }
  return read_events();
}

Result<EventStream> EventStream::open(const Client& client) {
  const Address& address = client.address();
  if (address.tls) return fail(Code::kUnimplemented, "events are followed over plain HTTP only");
  TRY_ASSIGN(UniqueFd socket, connect_to(address));
  TRY(write_all(socket.get(), "GET /api/v1/events HTTP/1.1\r\nHost: " + address.target() +
                                  "\r\nAuthorization: Bearer " + client.token() +
                                  "\r\nAccept: text/event-stream\r\n\r\n"));
  return EventStream(std::move(socket));
}

Result<std::vector<ChangeEvent>> EventStream::wait(Duration timeout) {
  const MonoTime end = mono_now() + timeout;
  for (Duration left = timeout;; left = std::max(Duration(0), end - mono_now())) {
    pollfd ready{socket_.get(), POLLIN, 0};
    const int count = ::poll(&ready, 1, milliseconds(left));
    if (count < 0 && errno != EINTR) return fail_errno("events");
    if (count == 0) return std::vector<ChangeEvent>();
    if (count < 0) continue;
    char buffer[16 << 10];
    const ssize_t size = ::recv(socket_.get(), buffer, sizeof buffer, 0);
    if (size <= 0) return fail(Code::kUnavailable, "the master has ended the stream of events");
    TRY_ASSIGN(auto events, parser_.take({buffer, static_cast<std::size_t>(size)}));
    if (!events.empty()) return events;
  }
}

}  // namespace det::cli
