// Owns accepting, counting and peeking.
#include "master/http/acceptor.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <map>
#include <vector>

#include "base/log.h"

namespace det::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kPreface = "PRI ";
constexpr auto kPeekAgain = std::chrono::milliseconds(20);
constexpr auto kBackOff = std::chrono::milliseconds(100);
constexpr auto kSweep = std::chrono::seconds(1);

/// A socket handed to gRPC is closed by gRPC, which does not tell. It is ours as long as its number still
/// names the same inode.
struct HandedOver {
  int fd;
  ino_t inode;
  std::string address;
  bool open() const {
    struct stat now {};
    return ::fstat(fd, &now) == 0 && S_ISSOCK(now.st_mode) && now.st_ino == inode;
  }
};

class Port : public Acceptor, public std::enable_shared_from_this<Port> {
 public:
  Port(asio::io_context& io, tcp::acceptor acceptor, const AcceptorLimits& limits)
      : io_(io), acceptor_(std::move(acceptor)), sweep_timer_(io), back_off_timer_(io), limits_(limits) {
    reserve();
  }

  int port() const override { return port_; }
  void set_port(int port) { port_ = port; }

  void start(std::function<void(UniqueFd)> grpc,
             std::function<void(tcp::socket, std::string, std::function<void()>)> http) override {
    grpc_ = std::move(grpc);
    http_ = std::move(http);
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
  struct Peek {
    Peek(tcp::socket s, std::string a)
        : socket(std::move(s)), timer(socket.get_executor()), address(std::move(a)) {}
    tcp::socket socket;
    asio::steady_timer timer;
    std::string address;
    Clock::time_point deadline;
  };

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

  /// Gives up the reserve descriptor to take the waiting connection and close it, so that its client hears at
  /// once; then rests a moment and goes on.
  void out_of_descriptors() {
    if (!complained_) log::warn("out of file descriptors: connections are refused", {{"open", total_}});
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
    // Without the reserve the next exhaustion would find us unable to answer: take it back first.
    if (!reserve_) reserve();
    if (!reserve_) return;
    complained_ = false;
    auto address = remote.address();
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
      address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
    }
    const std::string name = address.to_string();
    if (total_ >= limits_.connections) return;
    if (!address.is_loopback() && by_address_[name] >= limits_.per_address) return;
    count(name);
    socket.set_option(tcp::no_delay(true), error);
    socket.non_blocking(true, error);
    auto peek = std::make_shared<Peek>(std::move(socket), name);
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
    auto it = by_address_.find(address);
    if (it != by_address_.end() && --it->second <= 0) by_address_.erase(it);
  }

  void wait_for_bytes(const std::shared_ptr<Peek>& peek) {
    peek->timer.expires_at(peek->deadline);
    peek->timer.async_wait([peek](ErrorCode error) {
      if (!error) peek->socket.cancel(error);
    });
    peek->socket.async_wait(tcp::socket::wait_read, [self = shared_from_this(), peek](ErrorCode error) {
      peek->timer.cancel();
      if (error) return self->uncount(peek->address);
      self->look(peek);
    });
  }

  void look(const std::shared_ptr<Peek>& peek) {
    char first[kPreface.size()];
    const ssize_t count = ::recv(peek->socket.native_handle(), first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return wait_for_bytes(peek);
    if (count <= 0) return uncount(peek->address);
    const std::string_view seen(first, static_cast<std::size_t>(count));
    if (seen == kPreface) return to_grpc(peek);
    if (kPreface.substr(0, seen.size()) != seen) return to_http(peek);
    if (Clock::now() >= peek->deadline) return uncount(peek->address);
    // Too few bytes to tell, and they stay readable: look again a little later.
    peek->timer.expires_after(kPeekAgain);
    peek->timer.async_wait([self = shared_from_this(), peek](ErrorCode error) {
      if (error || self->stopped_) return self->uncount(peek->address);
      self->look(peek);
    });
  }

  void to_grpc(const std::shared_ptr<Peek>& peek) {
    ErrorCode error;
    UniqueFd fd(peek->socket.release(error));
    if (error || !fd) return uncount(peek->address);
    struct stat status {};
    ::fstat(fd.get(), &status);
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    handed_over_.push_back({fd.get(), status.st_ino, peek->address});
    grpc_(std::move(fd));
  }

  void to_http(const std::shared_ptr<Peek>& peek) {
    http_(std::move(peek->socket), peek->address,
          [self = shared_from_this(), address = peek->address] { self->uncount(address); });
  }

  void sweep() {
    std::erase_if(handed_over_, [this](const HandedOver& connection) {
      if (connection.open()) return false;
      uncount(connection.address);
      return true;
    });
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
  int port_ = 0;
  UniqueFd reserve_;
  bool stopped_ = false, complained_ = false;
  int total_ = 0;
  std::map<std::string, int> by_address_;
  std::vector<HandedOver> handed_over_;
  std::vector<std::weak_ptr<Peek>> peeking_;
  std::function<void(UniqueFd)> grpc_;
  std::function<void(tcp::socket, std::string, std::function<void()>)> http_;
};

/// The handle that main holds; the port itself lives as long as connections refer to it.
class Handle : public Acceptor {
 public:
  explicit Handle(std::shared_ptr<Port> port) : port_(std::move(port)) {}
  int port() const override { return port_->port(); }
  void start(std::function<void(UniqueFd)> grpc,
             std::function<void(tcp::socket, std::string, std::function<void()>)> http) override {
    port_->start(std::move(grpc), std::move(http));
  }
  void stop() override { port_->stop(); }

 private:
  std::shared_ptr<Port> port_;
};

}  // namespace

Result<std::unique_ptr<Acceptor>> Acceptor::listen(asio::io_context& io, const std::string& address, int port,
                                                   const AcceptorLimits& limits) {
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
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  const int bound = acceptor.local_endpoint(error).port();
  auto made = std::make_shared<Port>(io, std::move(acceptor), limits);
  made->set_port(bound);
  return std::make_unique<Handle>(std::move(made));
}

}  // namespace det::http
