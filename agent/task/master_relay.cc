#include "agent/task/master_relay.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <thread>

#include "common/base/files.h"
#include "common/sandbox/confine.h"
#include "common/task/message.h"

namespace det::agent {
namespace {

constexpr int kRelayBacklog = 256;
constexpr int kListenerFd = 3;  ///< of the relay, the only one beside its standard streams
constexpr timeval kConnectTimeout{1, 0};
constexpr Duration kRequestPatience = std::chrono::seconds(1);

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Sends small messages at once.
void send_at_once(int socket) {
  const int yes = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/// Bytes on their way from one socket to another.
struct Direction {
  int from, to;
  std::array<char, 64 << 10> bytes;
  std::size_t begin = 0, end = 0;
  bool ended = false;  ///< no more bytes follow those held

  bool holds() const { return begin < end; }
  bool done() const { return ended && !holds(); }

  /// Receives if nothing is held. Returns false after an error.
  bool receive() {
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    begin = 0, end = static_cast<std::size_t>(got);
    ended = got == 0;
    if (ended) (void)::shutdown(to, SHUT_WR);
    return true;
  }
  /// Sends what is held. Returns false after an error.
  bool send() {
    const ssize_t sent = ::send(to, bytes.data() + begin, end - begin, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    begin += static_cast<std::size_t>(sent);
    return true;
  }
};

/// Returns the path of TaskDir::ports() by the descriptor of its directory: the path of a socket is limited
/// to 107 bytes.
std::string short_path(const UniqueFd& directory) {
  return "/proc/self/fd/" + std::to_string(directory.get()) + "/ports";
}

/// Connects to HOST:PORT or [IPV6]:PORT; blocks for the resolver and for each address.
UniqueFd connect_to(const std::string& master) {
  const std::size_t colon = master.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = master.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), master.c_str() + colon + 1, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    UniqueFd socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket && ::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0) return socket;
  }
  return {};
}

/// Serves the listener until the end of the process.
[[noreturn]] void relay(const std::string& master) {
  static std::atomic<int> open{0};
  for (;;) {
    UniqueFd task(::accept4(kListenerFd, nullptr, nullptr, SOCK_CLOEXEC));
    if (!task && (errno == EINTR || errno == ECONNABORTED)) continue;
    // Out of memory, for example. The supervisor starts another relay.
    if (!task) ::_exit(1);
    if (open.load() >= kMaxRelayed) continue;
    ++open;
    std::thread([task = std::move(task), master]() mutable {
      send_at_once(task.get());
      // A task sees a master that is away as a connection that ends at once, and tries again.
      if (UniqueFd there = connect_to(master); there) {
        send_at_once(there.get());
        copy_both(std::move(task), std::move(there));
      }
      --open;
    }).detach();
  }
}

/// Returns a socket that is connected to the port of `request`.
Result<UniqueFd> connect_inside(std::string_view request) {
  constexpr std::string_view kConnect = "connect ";
  int port = 0;
  if (request.starts_with(kConnect))
    std::from_chars(request.data() + kConnect.size(), request.data() + request.size(), port);
  if (port < 1 || port > 65535) return fail(Code::kInvalidArgument, "expected: connect PORT");
  const std::string name = "port " + std::to_string(port) + " of the task";
  if (port == kRelayPort) return fail(Code::kPermissionDenied, name + " is the connection to the master");
  const sockaddr_in address = loopback(port);
  sockaddr_in6 second{};
  second.sin6_family = AF_INET6;
  second.sin6_port = address.sin_port;
  second.sin6_addr = in6addr_loopback;
  // Some programs listen on IPv6 only.
  const std::pair<const sockaddr*, socklen_t> places[]{
      {reinterpret_cast<const sockaddr*>(&address), sizeof address},
      {reinterpret_cast<const sockaddr*>(&second), sizeof second}};
  for (const auto& [place, size] : places) {
    UniqueFd socket(::socket(place->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // Also bounds connect(), which waits while the backlog of the listener is full.
    if (socket) (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kConnectTimeout, sizeof(timeval));
    if (socket && ::connect(socket.get(), place, size) == 0) return socket;
  }
  return fail(Code::kUnavailable, "nothing listens on " + name);
}

}  // namespace

Result<UniqueFd> listen_for_relay() {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(kRelayPort);
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kRelayBacklog) != 0)
    return fail_errno("listening on port " + std::to_string(kRelayPort) + " of the task");
  return socket;
}

Result<pid_t> start_relay(const UniqueFd& listener, const std::string& master, std::optional<uid_t> uid) {
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child > 0) return child;
  (void)::prctl(PR_SET_NAME, "det-relay");
  // Nothing of the supervisor stays open: neither the log nor the socket to process 1.
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const UniqueFd kept(::fcntl(listener.get(), F_DUPFD_CLOEXEC, kListenerFd + 1));
  for (int stream = 0; stream < kListenerFd; ++stream)
    if (::dup2(null.get(), stream) < 0) ::_exit(1);
  if (::dup2(kept.get(), kListenerFd) < 0) ::_exit(1);
  (void)::syscall(SYS_close_range, kListenerFd + 1, ~0U, 0);
  if (!confine(uid)) ::_exit(1);
  relay(master);
}

void copy_both(UniqueFd a, UniqueFd b) {
  const auto there = std::make_unique<Direction>(Direction{a.get(), b.get(), {}});
  const auto back = std::make_unique<Direction>(Direction{b.get(), a.get(), {}});
  while (!there->done() || !back->done()) {
    // Bytes are received only when the earlier ones are sent: a slow reader stops its sender.
    const auto events = [](const Direction& in, const Direction& out) {
      return static_cast<short>((!in.ended && !in.holds() ? POLLIN : 0) | (out.holds() ? POLLOUT : 0));
    };
    pollfd fds[2] = {{a.get(), events(*there, *back), 0}, {b.get(), events(*back, *there), 0}};
    // A socket without an awaited event is left out: its hang-up would end each wait at once.
    for (pollfd& each : fds)
      if (each.events == 0) each.fd = -1;
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
    for (Direction* const each : {there.get(), back.get()}) {
      const pollfd& source = each == there.get() ? fds[0] : fds[1];
      if (!each->ended && !each->holds() && source.revents != 0 && !each->receive()) return;
      if (each->holds() && !each->send()) return;
    }
  }
}

void serve_port_request(int listener) {
  const UniqueFd agent(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!agent) return;
  const auto request = receive_message(agent.get(), mono_now() + kRequestPatience);
  if (!request) return;
  const auto socket = connect_inside(request->text);
  if (socket) {
    (void)send_message(agent.get(), "connected", {socket->get()});
  } else {
    (void)send_message(agent.get(), "failed " + socket.error().message);
  }
}

Result<UniqueFd> listen_for_ports(const std::string& directory) {
  const UniqueFd opened(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return fail_errno(directory);
  return listen_messages(short_path(opened));
}

Result<UniqueFd> request_port(const std::string& directory, int port) {
  const UniqueFd opened(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return fail_errno(directory);
  TRY_ASSIGN(UniqueFd socket, connect_messages(short_path(opened)));
  TRY(send_message(socket.get(), "connect " + std::to_string(port)));
  return socket;
}

}  // namespace det::agent
