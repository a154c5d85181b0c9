// Each connection of a local client is one call of TaskService.Connect, with a thread for each direction.
#include "cli/tasks/port_forward.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <cstring>
#include <iostream>
#include <thread>

#include "cli/output/print.h"
#include "cli/tasks/tunnel_call.h"
#include "common/base/fd.h"
#include "common/base/text.h"

namespace det::cli {
namespace {

constexpr std::size_t kPiece = 64 << 10;

struct ForwardOptions {
  std::string task, ports;
  void declare(CLI::App& app) {
    app.add_option("TASK", task, "Task id, as shown by `det task list`.")->required();
    app.add_option("PORT", ports, "Port of the task, or LOCAL:PORT; default: the task's default port.");
  }
};

Result<PortPair> parse_ports(const std::string& text) {
  const auto number = [](std::string_view part, int& out) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), out);
    return error == std::errc() && end == part.data() + part.size() && out >= 1 && out <= 65535;
  };
  PortPair pair;
  if (text.empty()) return pair;
  const std::size_t colon = text.find(':');
  const std::string_view all(text);
  const bool fits = colon == std::string::npos ? number(all, pair.task)
                                               : number(all.substr(0, colon), pair.local) &&
                                                     number(all.substr(colon + 1), pair.task);
  if (!fits)
    return fail(Code::kInvalidArgument,
                "PORT: \"" + text + "\" is not of the form PORT or LOCAL:PORT, from 1 to 65535");
  if (colon == std::string::npos) pair.local = pair.task;
  return pair;
}

/// A connection to a port of a task.
class TaskConnection {
 public:
  TaskConnection(Client& client, const std::string& task, int port) : call_(client, target_of(task, port)) {}
  /// Waits until the port is connected. Returns its number. Errors: those of TaskService.Connect.
  Result<int> opened() {
    TRY_ASSIGN(const v1::TunnelOpened port, call_.opened());
    return port.port();
  }
  /// Passes data both ways until either side has closed. Blocks.
  void relay(const UniqueFd& socket) {
    std::thread up([this, &socket] { send_all(socket); });
    v1::TunnelMessage message;
    while (call_.stream().Read(&message)) {
      if (message.has_end()) ::shutdown(socket.get(), SHUT_WR);
      if (message.has_data() && !write_all(socket, message.data())) break;
    }
    call_.cancel();
    ::shutdown(socket.get(), SHUT_RDWR);
    up.join();
    (void)call_.finish();
  }
  void cancel() {
    call_.cancel();
    (void)call_.finish();
  }

 private:
  static v1::TunnelTarget target_of(const std::string& task, int port) {
    v1::TunnelTarget target;
    target.set_task_id(task);
    target.set_port(port);
    return target;
  }
  void send_all(const UniqueFd& socket) {
    std::array<char, kPiece> piece;
    for (;;) {
      const ssize_t count = ::recv(socket.get(), piece.data(), piece.size(), 0);
      if (count < 0 && errno == EINTR) continue;
      v1::TunnelMessage message;
      if (count > 0)
        message.set_data(piece.data(), static_cast<std::size_t>(count));
      else
        message.mutable_end();
      if (!call_.stream().Write(message) || count <= 0) return;
    }
  }
  static bool write_all(const UniqueFd& socket, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  TunnelCall call_;
};

/// Listens on loopback. `port` 0 picks a free one and is set to it.
Result<UniqueFd> listen_on(int& port) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!listener || ::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 64) != 0 ||
      ::getsockname(listener.get(), generic, &size) != 0) {
    return fail(Code::kAlreadyExists, "cannot listen on 127.0.0.1:" + std::to_string(port) + ": " +
                                          std::strerror(errno) + "; choose another with LOCAL:PORT");
  }
  port = ntohs(address.sin_port);
  return listener;
}

Status forward_chosen_port(Client& client, const ForwardOptions& options) {
  TRY_ASSIGN(const PortPair ports, parse_ports(options.ports));
  return forward_port(client, options.task, ports);
}

}  // namespace

Status forward_port(Client& client, const std::string& task, PortPair ports, const std::string& path) {
  // A first connection shows now whether the task, its port and its program are there.
  TaskConnection first(client, task, ports.task);
  TRY_ASSIGN(ports.task, first.opened());
  first.cancel();
  TRY_ASSIGN(const UniqueFd listener, listen_on(ports.local));
  std::cout << "Forwarding 127.0.0.1:" << ports.local << " to port " << ports.task << " of task " << task
            << ". Press Ctrl-C to end." << std::endl;
  if (!path.empty()) std::cout << "Open http://127.0.0.1:" << ports.local << printable(path) << std::endl;
  for (;;) {
    const int accepted = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (accepted < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (accepted < 0) return fail(Code::kInternal, std::string("accept: ") + std::strerror(errno));
    // Detached: the process ends by a signal.
    std::thread([&client, task, port = ports.task, fd = accepted] {
      const UniqueFd socket(fd);
      TaskConnection connection(client, task, port);
      if (const auto opened = connection.opened(); !opened) return print_error(opened.error());
      connection.relay(socket);
    }).detach();
  }
}

Command port_forward_command() {
  return {{"port-forward"}, "Forward a local port to a port of a task.", action(forward_chosen_port)};
}

}  // namespace det::cli
