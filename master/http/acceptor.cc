// Accepts connections, counts them and peeks at their first bytes.
#include "master/http/acceptor.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <map>
#include <vector>

#include "common/base/log.h"

namespace det::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Socket = asio::generic::stream_protocol::socket;
using Http = std::function<void(Socket, std::string, std::function<void()>)>;
using ErrorCode = boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kPrefaceStart = "PRI ";
// First byte of a TLS handshake record.
constexpr char kHandshake = 0x16;
/// Reply to a plain-text client on a TLS port, in both protocols: HTTP/1.1 text, and an empty SETTINGS frame
/// followed by a GOAWAY frame (INADEQUATE_SECURITY) of HTTP/2.
constexpr std::string_view kWantsTls = "this port speaks TLS only: write the master's address with https://";
constexpr std::string_view kEmptySettings("\0\0\0\4\0\0\0\0\0", 9);
constexpr std::string_view kGoAway("\7\0\0\0\0\0\0\0\0\0\0\0\x0c", 13);
constexpr auto kPeekAgain = std::chrono::milliseconds(20);
constexpr auto kBackOff = std::chrono::milliseconds(100);
constexpr auto kSweep = std::chrono::seconds(1);

/// A socket that gRPC owns and closes without notice. It is still open while its descriptor refers to the
/// same inode.
struct HandedOver {
  int fd;
  ino_t inode;
  std::shared_ptr<void> lease;
  bool open() const {
    struct stat now {};
    return ::fstat(fd, &now) == 0 && S_ISSOCK(now.st_mode) && now.st_ino == inode;
  }
};

/// Implementation of Acceptor. Kept alive by its pending operations and by the leases of its connections.
class Port : public Acceptor, public std::enable_shared_from_this<Port> {
 public:
  Port(asio::io_context& io, tcp::acceptor acceptor, const AcceptorLimits& limits, TlsServer tls)
      : io_(io),
        acceptor_(std::move(acceptor)),
        sweep_timer_(io),
        back_off_timer_(io),
        limits_(limits),
        tls_(std::move(tls)) {
    reserve();
  }

  int port() const override { return port_; }
  void set_port(int port) { port_ = port; }

  void start(std::function<void(UniqueFd)> grpc, Http http, std::function<bool()> evict) override {
    grpc_ = std::move(grpc);
    http_ = std::move(http);
    evict_ = std::move(evict);
    accept();
    sweep();
  }

  void stop() override {
    stopped_ = true;
    ErrorCode ignored;
    acceptor_.close(ignored);
    sweep_timer_.cancel();
    back_off_timer_.cancel();
    for (auto& weak : peeking_) {
      if (auto peek = weak.lock()) peek->socket.close(ignored);
    }
    peeking_.clear();
  }

 private:
  /// Counts a connection against the limits for as long as it lives.
  struct Lease {
    Lease(std::shared_ptr<Port> p, std::string a) : port(std::move(p)), address(std::move(a)) {
      port->count(address);
    }
    ~Lease() { port->uncount(address); }
    std::shared_ptr<Port> port;
    std::string address;
  };
  /// A connection before its protocol is detected.
  struct Peek {
    Peek(Socket s, std::string a, std::shared_ptr<void> l)
        : socket(std::move(s)), timer(socket.get_executor()), address(std::move(a)), lease(std::move(l)) {}
    Socket socket;
    asio::steady_timer timer;
    std::string address;
    // Null for the inner end of a tunnel, which holds the lease itself.
    std::shared_ptr<void> lease;
    Clock::time_point deadline;
  };

  /// Holds one descriptor in reserve, for use when there are no others.
  void reserve() { reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

  void accept() {
    if (stopped_) return;
    acceptor_.async_accept([self = shared_from_this()](ErrorCode error, tcp::socket socket) {
      if (self->stopped_) return;
      if (error == asio::error::no_descriptors || error.value() == ENFILE || error.value() == ENOBUFS ||
          error.value() == ENOMEM) {
        return self->out_of_descriptors();
      }
      if (!error) self->admit(std::move(socket));
      self->accept();
    });
  }

  /// Accepts the waiting connection with the reserve descriptor and closes it, so that its client fails at
  /// once instead of hanging. Then resumes after a pause.
  void out_of_descriptors() {
    if (!complained_) log::warn("out of file descriptors; connections are rejected", {{"open", total_}});
    complained_ = true;
    reserve_.reset();
    UniqueFd refused(::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    refused.reset();
    reserve();
    back_off_timer_.expires_after(kBackOff);
    back_off_timer_.async_wait([self = shared_from_this()](ErrorCode error) {
      if (!error) self->accept();
    });
  }

  void admit(tcp::socket socket) {
    ErrorCode error;
    const auto remote = socket.remote_endpoint(error);
    if (error) return;
    // Without a reserve, the next exhaustion could not be handled: restore it before admitting anything.
    if (!reserve_) reserve();
    if (!reserve_) return;
    complained_ = false;
    auto address = remote.address();
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
      // Count IPv4 clients of a dual-stack socket together with those of an IPv4 socket.
      address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
    }
    const std::string name = address.to_string(), group = address_group(address);
    // Returning closes the socket: connections over a limit get no reply.
    const auto of_group = by_address_.find(group);
    const bool limited = !address.is_loopback() && !limits_.exempt.contains(name);
    if (limited && of_group != by_address_.end() && of_group->second >= limits_.per_address) return;
    // The evicted connection still counts for a moment.
    if (total_ >= limits_.connections && !evict_()) return;
    auto lease = std::make_shared<Lease>(shared_from_this(), group);
    socket.set_option(tcp::no_delay(true), error);
    socket.non_blocking(true, error);
    peek_at(Socket(std::move(socket)), name, std::move(lease));
  }

  void peek_at(Socket socket, const std::string& address, std::shared_ptr<void> lease) {
    auto peek = std::make_shared<Peek>(std::move(socket), address, std::move(lease));
    peek->deadline = Clock::now() + limits_.first_bytes;
    peeking_.push_back(peek);
    wait_for_bytes(peek);
  }

  void count(const std::string& address) {
    ++total_;
    ++by_address_[address];
  }
  void uncount(const std::string& address) {
    --total_;
    // Erase empty entries: the map must not grow with every address ever seen.
    auto it = by_address_.find(address);
    if (it != by_address_.end() && --it->second <= 0) by_address_.erase(it);
  }

  void wait_for_bytes(const std::shared_ptr<Peek>& peek) {
    peek->timer.expires_at(peek->deadline);
    peek->timer.async_wait([peek](ErrorCode error) {
      if (!error) peek->socket.cancel(error);
    });
    peek->socket.async_wait(Socket::wait_read, [self = shared_from_this(), peek](ErrorCode error) {
      peek->timer.cancel();
      if (!error) self->look(peek);
    });
  }

  /// Routes a connection by its first bytes. Dropping `peek` closes the connection.
  void look(const std::shared_ptr<Peek>& peek) {
    char first[kPrefaceStart.size()];
    const ssize_t count = ::recv(peek->socket.native_handle(), first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return wait_for_bytes(peek);
    if (count <= 0) return;
    const std::string_view seen(first, static_cast<std::size_t>(count));
    // Only the inner end of a tunnel has no lease: its bytes are decrypted and inspected.
    const bool inside = !peek->lease;
    if (tls_ && !inside) {
      if (seen[0] == kHandshake) return to_tunnel(peek);
      if (seen == kPrefaceStart || kPrefaceStart.substr(0, seen.size()) != seen)
        return refuse_plain_text(peek, seen == kPrefaceStart);
    }
    // All gRPC traffic goes through the HTTP/2 guard, also that of trials on this machine.
    if (seen == kPrefaceStart && !inside) return to_tunnel(peek);
    if (seen == kPrefaceStart) return to_grpc(peek);
    if (kPrefaceStart.substr(0, seen.size()) != seen) return to_http(peek);
    if (Clock::now() >= peek->deadline) return;
    // Too few bytes to decide. They stay in the socket, so poll instead of waiting for readability.
    peek->timer.expires_after(kPeekAgain);
    peek->timer.async_wait([self = shared_from_this(), peek](ErrorCode error) {
      if (!error && !self->stopped_) self->look(peek);
    });
  }

  void to_tunnel(const std::shared_ptr<Peek>& peek) {
    ErrorCode error;
    UniqueFd fd(peek->socket.release(error));
    if (error || !fd) return;
    tcp::socket socket(io_);
    socket.assign(acceptor_.local_endpoint(error).protocol(), fd.get(), error);
    if (error) return;
    fd.release();
    socket.non_blocking(true, error);
    open_tunnel(
        io_, std::move(socket), tls_, peek->address, limits_.first_bytes,
        [self = shared_from_this()](UniqueFd plain, const Peer& peer) {
          if (self->stopped_) return;
          ErrorCode failed;
          Socket inner(self->io_);
          inner.assign(asio::generic::stream_protocol(AF_UNIX, 0), plain.get(), failed);
          if (failed) return;
          plain.release();
          self->peek_at(std::move(inner), peer.address, nullptr);
        },
        peek->lease);
  }

  /// Reads all pending bytes before replying: closing a socket with unread bytes sends a reset that can
  /// overtake the reply.
  void refuse_plain_text(const std::shared_ptr<Peek>& peek, bool http2) {
    char rest[4096];
    const int fd = peek->socket.native_handle();
    while (::recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0) continue;
    std::string answer;
    if (http2) {
      answer = std::string(kEmptySettings) + std::string("\0\0", 2) +
               static_cast<char>(8 + kWantsTls.size()) + std::string(kGoAway) + std::string(kWantsTls);
    } else {
      answer =
          "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: " +
          std::to_string(kWantsTls.size() + 1) + "\r\n\r\n" + std::string(kWantsTls) + "\n";
    }
    (void)::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ErrorCode ignored;
    peek->socket.shutdown(Socket::shutdown_send, ignored);
    wait_for_end(peek);
  }

  /// Keeps the socket open until the client closes it or its deadline passes.
  void wait_for_end(const std::shared_ptr<Peek>& peek) {
    peek->timer.expires_at(peek->deadline);
    peek->timer.async_wait([peek](ErrorCode error) {
      if (!error) peek->socket.cancel(error);
    });
    peek->socket.async_wait(Socket::wait_read, [self = shared_from_this(), peek](ErrorCode error) {
      char rest[4096];
      ssize_t count = 0;
      while (!error && (count = ::recv(peek->socket.native_handle(), rest, sizeof rest, MSG_DONTWAIT)) > 0)
        continue;
      peek->timer.cancel();
      if (!error && count < 0 && errno == EAGAIN && Clock::now() < peek->deadline) self->wait_for_end(peek);
    });
  }

  void to_grpc(const std::shared_ptr<Peek>& peek) {
    ErrorCode error;
    UniqueFd fd(peek->socket.release(error));
    if (error || !fd) return;
    struct stat status {};
    ::fstat(fd.get(), &status);
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    if (peek->lease) handed_over_.push_back({fd.get(), status.st_ino, peek->lease});
    grpc_(std::move(fd));
  }

  void to_http(const std::shared_ptr<Peek>& peek) {
    http_(std::move(peek->socket), peek->address, [lease = std::move(peek->lease)] {});
  }

  void sweep() {
    // gRPC and dropped peeks close sockets without notice, so leases are collected by polling.
    std::erase_if(handed_over_, [](const HandedOver& connection) { return !connection.open(); });
    std::erase_if(peeking_, [](const std::weak_ptr<Peek>& peek) { return peek.expired(); });
    sweep_timer_.expires_after(kSweep);
    sweep_timer_.async_wait([self = shared_from_this()](ErrorCode error) {
      if (!error && !self->stopped_) self->sweep();
    });
  }

  asio::io_context& io_;
  tcp::acceptor acceptor_;
  asio::steady_timer sweep_timer_, back_off_timer_;
  const AcceptorLimits limits_;
  const TlsServer tls_;
  int port_ = 0;
  UniqueFd reserve_;
  bool stopped_ = false, complained_ = false;
  int total_ = 0;
  std::map<std::string, int> by_address_;
  std::vector<HandedOver> handed_over_;
  std::vector<std::weak_ptr<Peek>> peeking_;
  std::function<void(UniqueFd)> grpc_;
  Http http_;
  std::function<bool()> evict_;
};

/// Handle of the caller; the port itself lives as long as connections refer to it.
class Handle : public Acceptor {
 public:
  explicit Handle(std::shared_ptr<Port> port) : port_(std::move(port)) {}
  int port() const override { return port_->port(); }
  void start(std::function<void(UniqueFd)> grpc, Http http, std::function<bool()> evict) override {
    port_->start(std::move(grpc), std::move(http), std::move(evict));
  }
  void stop() override { port_->stop(); }

 private:
  std::shared_ptr<Port> port_;
};

}  // namespace

std::string address_group(const asio::ip::address& address) {
  if (!address.is_v6()) return address.to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

Result<std::unique_ptr<Acceptor>> Acceptor::listen(asio::io_context& io, const std::string& address, int port,
                                                   const AcceptorLimits& limits, TlsServer tls) {
  ErrorCode error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return fail(Code::kInvalidArgument, "listen: " + address + " is not a numeric address");
  tcp::endpoint endpoint(ip, static_cast<unsigned short>(port));
  const std::string where = address + ":" + std::to_string(port);
  tcp::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(1024, error);
  if (error == asio::error::address_in_use) {
    return fail(Code::kAlreadyExists,
                "listen: " + where + " is taken by another program; stop it or choose another with --listen");
  }
  if (error) return fail(Code::kUnavailable, "listen: " + where + ": " + error.message());
  // Child processes must not inherit the listener.
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  const int bound = acceptor.local_endpoint(error).port();
  auto made = std::make_shared<Port>(io, std::move(acceptor), limits, std::move(tls));
  made->set_port(bound);
  return std::make_unique<Handle>(std::move(made));
}

}  // namespace det::http
