// A port of a task on loopback: bytes of a TCP connection become messages of a tunnel.
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <utility>

#include "agent/master_link/tunnel_end.h"
#include "agent/master_link/tunnels.h"
#include "common/base/files.h"
#include "common/base/text.h"

namespace det::agent {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using PortError = boost::system::error_code;

/// Time for the program to listen, and between two attempts.
constexpr auto kConnectTime = std::chrono::seconds(5);
constexpr auto kRetryTime = std::chrono::milliseconds(100);
constexpr std::size_t kPiece = 64 << 10;

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

class PortEnd final : public TunnelEnd, public std::enable_shared_from_this<PortEnd> {
 public:
  PortEnd(asio::io_context& io, int port, uid_t uid)
      : io_(io), port_(port), uid_(uid), socket_(io), timer_(io) {}

  void connect(Connected done) override {
    deadline_ = asio::steady_timer::clock_type::now() + kConnectTime;
    attempt(tcp::endpoint(asio::ip::address_v4::loopback(), static_cast<unsigned short>(port_)),
            std::move(done));
  }

  void read(v1::TunnelMessage& out, Done done) override {
    socket_.async_read_some(asio::buffer(piece_), [self = shared_from_this(), &out, done = std::move(done)](
                                                      PortError error, std::size_t count) {
      if (self->closed_) return;
      if (error && error != asio::error::eof) return done(false);
      out.Clear();
      error ? static_cast<void>(out.mutable_end()) : out.set_data(self->piece_.data(), count);
      done(true);
    });
  }

  void write(const v1::TunnelMessage& message, Done done) override {
    if (message.has_size()) return done(false);
    if (!message.has_data()) {
      PortError ignored;
      socket_.shutdown(tcp::socket::shutdown_send, ignored);
      return done(true);
    }
    asio::async_write(socket_, asio::buffer(message.data()),
                      [self = shared_from_this(), done = std::move(done)](PortError error, std::size_t) {
                        if (!self->closed_) done(!error);
                      });
  }

  void close() override {
    closed_ = true;
    PortError ignored;
    timer_.cancel();
    socket_.close(ignored);
  }

 private:
  void attempt(const tcp::endpoint& address, Connected done) {
    socket_ = tcp::socket(io_);
    timer_.expires_at(deadline_);
    timer_.async_wait([self = shared_from_this()](PortError error) {
      PortError ignored;
      if (!error) self->socket_.close(ignored);
    });
    socket_.async_connect(address,
                          [self = shared_from_this(), address, done = std::move(done)](PortError error) {
                            self->timer_.cancel();
                            error ? self->failed(address, done) : self->connected(done);
                          });
  }

  /// Tries the other loopback address: some programs listen on IPv6 only. A program that has just been
  /// started may not listen yet, so the attempts go on for a while.
  void failed(const tcp::endpoint& address, const Connected& done) {
    if (asio::steady_timer::clock_type::now() + kRetryTime >= deadline_)
      return done("nothing listens on port " + std::to_string(port_) + " of the task");
    if (address.address().is_v4()) return attempt({asio::ip::address_v6::loopback(), address.port()}, done);
    timer_.expires_after(kRetryTime);
    timer_.async_wait([self = shared_from_this(), address, done](PortError) {
      self->attempt({asio::ip::address_v4::loopback(), address.port()}, done);
    });
  }

  void connected(const Connected& done) {
    PortError ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    done(owns_listener(port_, uid_) ? ""
                                    : "port " + std::to_string(port_) +
                                          " belongs to another program of the machine; choose another");
  }

  asio::io_context& io_;
  const int port_;
  const uid_t uid_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  asio::steady_timer::time_point deadline_;
  std::array<char, kPiece> piece_;
  bool closed_ = false;
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

std::shared_ptr<TunnelEnd> make_port_end(asio::io_context& io, int port, uid_t uid) {
  return std::make_shared<PortEnd>(io, port, uid);
}

}  // namespace det::agent
