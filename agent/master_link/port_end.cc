// A port of a task on loopback of the machine, or in the network of the task: bytes of a TCP connection
// become messages of a tunnel.
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <utility>

#include "agent/master_link/stream_end.h"
#include "agent/master_link/tunnels.h"
#include "agent/task/master_relay.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "common/task/message.h"

namespace det::agent {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using PortError = boost::system::error_code;

/// Time for the program to listen, and between two attempts.
constexpr auto kConnectTime = std::chrono::seconds(5);
constexpr auto kRetryTime = std::chrono::milliseconds(100);

/// Fields of a line of /proc/net/tcp: "sl local remote st tx:rx tr:when retrnsmt uid …".
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  for (const std::string& each : split(std::string(line), ' '))
    if (!each.empty()) fields.push_back(each);
  return fields;
}

/// Whether all listeners on `port` of this machine belong to `uid`, with at least one.
bool owns_listener(int port, uid_t uid) {
  std::string table;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    // The second one is absent without IPv6.
    if (auto read = read_file(path, 64 << 20)) table += *read;
  }
  return listens_as(table, port, uid);
}

/// The connection to a port. A program that has just been started may not listen yet, so attempts to connect
/// go on for a while.
class PortEnd : public StreamEnd<tcp::socket> {
 public:
  PortEnd(asio::io_context& io, int port) : StreamEnd(io), io_(io), port_(port), timer_(io) {}

  void connect(Connected done) override {
    deadline_ = asio::steady_timer::clock_type::now() + kConnectTime;
    attempt(std::move(done));
  }

  void close() override {
    StreamEnd::close();
    timer_.cancel();
  }

 protected:
  /// Tries to connect. Calls opened() or retry().
  virtual void attempt(Connected done) = 0;

  /// Repeats the attempt after a while. `why`: the error when the time is over.
  void retry(const std::string& why, Connected done) {
    if (closed_) return;
    if (asio::steady_timer::clock_type::now() + kRetryTime >= deadline_) return done(why);
    timer_.expires_after(kRetryTime);
    timer_.async_wait([self = std::static_pointer_cast<PortEnd>(shared_from_this()),
                       done = std::move(done)](PortError) { self->attempt(done); });
  }

  std::string not_served() const {
    return "nothing listens on port " + std::to_string(port_) + " of the task";
  }

  void opened(const Connected& done) {
    PortError ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    done("");
  }

  asio::io_context& io_;
  const int port_;
  asio::steady_timer timer_;
  asio::steady_timer::time_point deadline_;
};

/// A port on loopback of the machine, which may have been taken by another program.
class MachinePortEnd final : public PortEnd {
 public:
  MachinePortEnd(asio::io_context& io, int port, uid_t uid) : PortEnd(io, port), uid_(uid) {}

 private:
  std::shared_ptr<MachinePortEnd> self() {
    return std::static_pointer_cast<MachinePortEnd>(shared_from_this());
  }

  void attempt(Connected done) override {
    attempt(tcp::endpoint(asio::ip::address_v4::loopback(), static_cast<unsigned short>(port_)),
            std::move(done));
  }

  void attempt(const tcp::endpoint& address, Connected done) {
    socket_ = tcp::socket(io_);
    timer_.expires_at(deadline_);
    timer_.async_wait([self = self()](PortError error) {
      PortError ignored;
      if (!error) self->socket_.close(ignored);
    });
    socket_.async_connect(address, [self = self(), address, done = std::move(done)](PortError error) {
      self->timer_.cancel();
      if (!error) return self->connected(done);
      // Some programs listen on IPv6 only.
      if (address.address().is_v4())
        return self->attempt({asio::ip::address_v6::loopback(), address.port()}, done);
      self->retry(self->not_served(), done);
    });
  }

  void connected(const Connected& done) {
    if (owns_listener(port_, uid_)) return opened(done);
    done("port " + std::to_string(port_) + " belongs to another program of the machine; choose another");
  }

  const uid_t uid_;
};

/// A port in the network of a task, where all listeners are the task's. Process 1 of its sandbox connects.
class TaskPortEnd final : public PortEnd {
 public:
  TaskPortEnd(asio::io_context& io, int port, TaskDir dir)
      : PortEnd(io, port), dir_(std::move(dir)), asked_(io) {}

  void close() override {
    PortEnd::close();
    PortError ignored;
    asked_.close(ignored);
  }

 private:
  void attempt(Connected done) override {
    auto request = request_port(dir_.path(), port_);
    // Its supervisor may be about to listen.
    if (!request) return retry("the task has no process on this agent, or has ended", std::move(done));
    PortError failed;
    asked_.assign(request->release(), failed);
    timer_.expires_at(deadline_);
    auto self = std::static_pointer_cast<TaskPortEnd>(shared_from_this());
    timer_.async_wait([self](PortError error) {
      if (!error) self->asked_.cancel();
    });
    asked_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self, done = std::move(done)](PortError error) {
                        self->timer_.cancel();
                        if (!self->closed_) self->answered(error, done);
                      });
  }

  void answered(PortError error, const Connected& done) {
    auto reply = error ? Result<Message>(fail(Code::kDeadlineExceeded, "the task does not answer"))
                       : receive_message(asked_.native_handle(), mono_now());
    PortError failed;
    asked_.close(failed);
    if (!reply) return done("port " + std::to_string(port_) + ": " + reply.error().message);
    if (reply->fds.empty()) return retry(not_served(), done);
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    (void)::getpeername(reply->fds[0].get(), reinterpret_cast<sockaddr*>(&peer), &size);
    socket_ = tcp::socket(io_);
    socket_.assign(peer.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), reply->fds[0].get(), failed);
    if (failed) return done("port " + std::to_string(port_) + ": " + failed.message());
    (void)reply->fds[0].release();
    opened(done);
  }

  const TaskDir dir_;
  asio::posix::stream_descriptor asked_;  ///< to process 1 of the sandbox
};

}  // namespace

bool listens_as(std::string_view table, int port, uid_t uid) {
  constexpr const char* kListening = "0A";
  bool found = false;
  for (const std::string& line : split(std::string(table), '\n')) {
    const auto fields = fields_of(line);
    if (fields.size() < 8 || fields[3] != kListening) continue;
    const std::string& local = fields[1];
    const std::size_t colon = local.rfind(':');
    if (colon == std::string::npos) continue;
    int number = 0;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), number, 16);
    if (number != port) continue;
    if (fields[7] != std::to_string(uid)) return false;
    found = true;
  }
  return found;
}

std::shared_ptr<TunnelEnd> make_port_end(asio::io_context& io, int port, std::optional<uid_t> uid,
                                         const TaskDir& dir) {
  if (uid) return std::make_shared<MachinePortEnd>(io, port, *uid);
  return std::make_shared<TaskPortEnd>(io, port, dir);
}

}  // namespace det::agent
