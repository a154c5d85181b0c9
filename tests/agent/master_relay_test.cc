// The relay of a task with a network of its own: bytes and ends of connections, and ports from outside.
#include "agent/task/master_relay.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "common/base/files.h"
#include "common/task/message.h"
#include "need.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

struct Ends {
  UniqueFd near, far;
};

Ends socket_pair() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// A listener on a free port of the loopback interface.
struct Listener {
  explicit Listener(int family = AF_INET) : socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    auto* const place =
        family == AF_INET ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6);
    socklen_t size = family == AF_INET ? sizeof v4 : sizeof v6;
    REQUIRE(::bind(socket.get(), place, size) == 0);
    REQUIRE(::listen(socket.get(), 8) == 0);
    REQUIRE(::getsockname(socket.get(), place, &size) == 0);
    port = ntohs(family == AF_INET ? v4.sin_port : v6.sin6_port);
  }
  UniqueFd accept() const { return UniqueFd(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  UniqueFd socket;
  int port = 0;
};

UniqueFd connect_to_port(int port) {
  UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return client;
}

/// Reads to the end of the stream.
std::string read_all(const UniqueFd& socket) {
  std::string text(1 << 16, '\0'), all;
  for (ssize_t got; (got = ::read(socket.get(), text.data(), text.size())) > 0;)
    all.append(text, 0, static_cast<std::size_t>(got));
  return all;
}

/// Sends a request for a port of the "task", which is this process.
Message ask(const std::string& directory, const UniqueFd& listener, int port) {
  const UniqueFd agent = need(request_port(directory, port));
  serve_port_request(listener.get());
  return need(receive_message(agent.get(), mono_now() + 5s));
}

}  // namespace

TEST_CASE("a relay copies both directions, each to its own end", "[relay]") {
  Ends task = socket_pair(), master = socket_pair();
  std::jthread relay(copy_both, std::move(task.far), std::move(master.far));
  // More than any buffer on the way holds.
  const std::string request(3 << 20, 'q'), reply(2 << 20, 'r');
  // Catch2's checks belong to one thread; the reader sees what was not sent.
  std::jthread sender([&] {
    (void)write_all(task.near.get(), request);
    ::shutdown(task.near.get(), SHUT_WR);
  });
  CHECK(read_all(master.near) == request);
  std::jthread answer([&] {
    (void)write_all(master.near.get(), reply);
    master.near.reset();
  });
  CHECK(read_all(task.near) == reply);
}

TEST_CASE("a relay ends when the task closes its connection before the reply", "[relay]") {
  Ends task = socket_pair(), master = socket_pair();
  std::jthread relay(copy_both, std::move(task.far), std::move(master.far));
  task.near.reset();
  CHECK(read_all(master.near).empty());
  master.near.reset();
  relay.join();
  SUCCEED();
}

TEST_CASE("a relay connects each connection of its listener to the master", "[relay]") {
  const Listener inside, master;
  const pid_t relay =
      need(start_relay(inside.socket, "127.0.0.1:" + std::to_string(master.port), std::nullopt));
  for (const std::string text : {"first", "second"}) {
    const UniqueFd task = connect_to_port(inside.port);
    const UniqueFd there = master.accept();
    REQUIRE(::write(task.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::shutdown(task.get(), SHUT_WR);
    CHECK(read_all(there) == text);
  }
  CHECK(::kill(relay, SIGKILL) == 0);
  CHECK(::waitpid(relay, nullptr, 0) == relay);
}

TEST_CASE("a relay ends connections of a task while the master is away", "[relay]") {
  const Listener inside;
  const int free_port = Listener().port;
  const pid_t relay =
      need(start_relay(inside.socket, "127.0.0.1:" + std::to_string(free_port), std::nullopt));
  CHECK(read_all(connect_to_port(inside.port)).empty());
  CHECK(::kill(relay, SIGKILL) == 0);
  CHECK(::waitpid(relay, nullptr, 0) == relay);
}

TEST_CASE("a port of a task is reached as a socket that the task's side has connected", "[relay]") {
  // Longer than the path of a socket can be.
  const TemporaryDirectory place = need(TemporaryDirectory::create());
  const std::string directory = place.path() + "/" + std::string(120, 'd');
  need(make_directories(directory));
  const UniqueFd ports = need(listen_for_ports(directory));
  for (const int family : {AF_INET, AF_INET6}) {
    const Listener program(family);
    const Message answer = ask(directory, ports, program.port);
    CHECK(answer.text == "connected");
    REQUIRE(answer.fds.size() == 1);
    need(write_all(answer.fds[0].get(), "hello"));
    ::shutdown(answer.fds[0].get(), SHUT_WR);
    CHECK(read_all(program.accept()) == "hello");
  }
}

TEST_CASE("a port without a listener, and the relay's own, are refused by name", "[relay]") {
  const TemporaryDirectory place = need(TemporaryDirectory::create());
  const UniqueFd ports = need(listen_for_ports(place.path()));
  const int free_port = Listener().port;
  const Message absent = ask(place.path(), ports, free_port);
  CHECK(absent.fds.empty());
  CHECK(absent.text == "failed nothing listens on port " + std::to_string(free_port) + " of the task");
  CHECK_THAT(ask(place.path(), ports, kRelayPort).text, Catch::Contains("is the connection to the master"));
  CHECK_THAT(ask(place.path(), ports, 0).text, Catch::Contains("expected: connect PORT"));
}
