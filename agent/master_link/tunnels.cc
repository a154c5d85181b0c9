// States of a tunnel: connecting → answered → open → closed. All of it runs on the I/O thread; gRPC's threads
// only post to it.
#include "agent/master_link/tunnels.h"

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "agent/master_link/link.h"
#include "agent/task/master_relay.h"
#include "agent/task/message.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "det/v1/agent.grpc.pb.h"

namespace det::agent {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr auto kConnectTime = std::chrono::seconds(5);
constexpr std::size_t kPiece = 64 << 10;
// The master admits 100 streams per connection.
constexpr int kTunnelsPerChannel = 64;

/// A connection to the master and the number of its tunnels.
struct Carrier {
  std::shared_ptr<grpc::Channel> channel;
  int tunnels = 0;
};

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

/// State of the I/O thread.
struct Tunnels::Shared {
  class Tunnel;
  Shared(std::string m, MasterTrust t, std::string a)
      : master(std::move(m)), trust(std::move(t)), agent_id(std::move(a)) {}

  /// Returns a connection to the master with room for a tunnel; null after an error.
  std::shared_ptr<Carrier> carrier();

  const std::string master;
  const MasterTrust trust;
  const std::string agent_id;
  asio::io_context io{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{io.get_executor()};
  std::vector<std::shared_ptr<Carrier>> carriers;
  std::set<Tunnel*> tunnels;  ///< of which gRPC has not ended the call
  bool closing = false;
  std::thread thread;
};

/// One tunnel. Keeps itself alive until gRPC has finished with it.
class Tunnels::Shared::Tunnel : public grpc::ClientBidiReactor<v1::TunnelMessage, v1::TunnelMessage>,
                                public std::enable_shared_from_this<Tunnel> {
 public:
  Tunnel(std::shared_ptr<Shared> shared, v1::OpenTunnel order)
      : shared_(std::move(shared)),
        order_(std::move(order)),
        socket_(shared_->io),
        asked_(shared_->io),
        timer_(shared_->io) {}
  ~Tunnel() override { shared_->tunnels.erase(this); }

  void connect(uid_t uid) {
    const tcp::endpoint loopback(asio::ip::address_v4::loopback(),
                                 static_cast<unsigned short>(order_.port()));
    timer_.expires_after(kConnectTime);
    timer_.async_wait([self = shared_from_this()](ErrorCode error) {
      ErrorCode ignored;
      if (!error && !self->carrier_) self->socket_.close(ignored);
    });
    socket_.async_connect(loopback, [self = shared_from_this(), uid](ErrorCode error) {
      if (!error) return self->connected(uid);
      // Some programs listen on IPv6 only.
      const tcp::endpoint second(asio::ip::address_v6::loopback(),
                                 static_cast<unsigned short>(self->order_.port()));
      self->socket_ = tcp::socket(self->shared_->io);
      self->socket_.async_connect(second, [self, uid](ErrorCode again) {
        again
            ? self->answer("nothing listens on port " + std::to_string(self->order_.port()) + " of the task")
            : self->connected(uid);
      });
    });
  }

  /// Asks process 1 of the task's sandbox for a connected socket.
  void connect_inside(const std::string& directory) {
    auto request = request_port(directory, order_.port());
    if (!request) return answer("the task has no process on agent " + shared_->agent_id);
    asked_.assign(request->release());
    timer_.expires_after(kConnectTime);
    timer_.async_wait([self = shared_from_this()](ErrorCode error) {
      ErrorCode ignored;
      if (!error && !self->carrier_) self->asked_.close(ignored);
    });
    asked_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](ErrorCode error) { self->take_socket(error); });
  }

  /// Calls the master. `error`: why there is no tunnel; "" for an open one.
  void answer(const std::string& error) {
    timer_.cancel();
    if (shared_->closing) return;
    carrier_ = shared_->carrier();
    // Without an answer the master closes the tunnel by its own time limit.
    if (!carrier_) return;
    guard_.emplace(shared_->io.get_executor());
    ++carrier_->tunnels;
    stub_ = v1::AgentService::NewStub(carrier_->channel);
    self_ = shared_from_this();
    shared_->tunnels.insert(this);
    v1::TunnelAnswer* message = outgoing_.mutable_answer();
    message->set_tunnel_id(order_.tunnel_id());
    message->set_agent_id(shared_->agent_id);
    message->set_error(error);
    stub_->async()->Tunnel(&context_, this);
    // Writes start on the I/O thread; the hold keeps the call from completing in between.
    AddHold();
    writing_ = true;
    StartWrite(&outgoing_);
    StartRead(&incoming_);
    StartCall();
  }
  void cancel() { context_.TryCancel(); }

 private:
  void connected(uid_t uid) {
    ErrorCode ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    if (!owns_listener(order_.port(), uid))
      return answer("port " + std::to_string(order_.port()) +
                    " belongs to another program of the machine; choose another");
    answer("");
  }

  void take_socket(ErrorCode error) {
    auto reply = error ? Result<Message>(fail(Code::kDeadlineExceeded, "the task does not answer"))
                       : receive_message(asked_.native_handle(), mono_now());
    ErrorCode ignored;
    asked_.close(ignored);
    if (!reply) return answer("port " + std::to_string(order_.port()) + ": " + reply.error().message);
    if (reply->fds.empty()) return answer(reply->text.substr(reply->text.find(' ') + 1));
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    (void)::getpeername(reply->fds[0].get(), reinterpret_cast<sockaddr*>(&peer), &size);
    ErrorCode failed;
    socket_.assign(peer.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), reply->fds[0].get(), failed);
    if (failed) return answer("port " + std::to_string(order_.port()) + ": " + failed.message());
    (void)reply->fds[0].release();
    socket_.set_option(tcp::no_delay(true), ignored);
    answer("");
  }

  template <typename Work>
  void post(Work work) {
    asio::post(shared_->io, [self = shared_from_this(), work] { work(*self); });
  }
  void OnReadDone(bool ok) override {
    post([ok](Tunnel& tunnel) { ok ? tunnel.received() : tunnel.closed(); });
  }
  void OnWriteDone(bool ok) override {
    post([ok](Tunnel& tunnel) { tunnel.written(ok); });
  }
  void OnDone(const grpc::Status&) override {
    post([](Tunnel& tunnel) {
      --tunnel.carrier_->tunnels;
      tunnel.shared_->tunnels.erase(&tunnel);
      tunnel.guard_.reset();
      tunnel.self_.reset();
    });
  }

  void received() {
    if (incoming_.has_opened()) {
      opened_ = true;
      // The end of the first write may be reported after the reply to it.
      if (!writing_) read_socket();
    } else if (incoming_.has_end()) {
      ErrorCode ignored;
      socket_.shutdown(tcp::socket::shutdown_send, ignored);
      end_received_ = true;
      finish_if_ended();
    } else if (incoming_.has_data()) {
      return asio::async_write(socket_, asio::buffer(incoming_.data()),
                               [self = shared_from_this()](ErrorCode error, std::size_t) {
                                 if (self->closed_) return;
                                 error ? self->cancel() : self->StartRead(&self->incoming_);
                               });
    }
    StartRead(&incoming_);
  }

  void read_socket() {
    socket_.async_read_some(asio::buffer(piece_),
                            [self = shared_from_this()](ErrorCode error, std::size_t count) {
                              if (self->closed_) return;
                              if (error && error != asio::error::eof) return self->cancel();
                              self->outgoing_.Clear();
                              if (error)
                                self->outgoing_.mutable_end();
                              else
                                self->outgoing_.set_data(self->piece_.data(), count);
                              self->end_sent_ = error == asio::error::eof;
                              self->writing_ = true;
                              self->StartWrite(&self->outgoing_);
                            });
  }

  void written(bool ok) {
    writing_ = false;
    if (!ok || closed_) return;
    if (end_sent_) return finish_if_ended();
    if (opened_) read_socket();
  }

  /// Ends the call when both directions have ended.
  void finish_if_ended() {
    if (end_sent_ && end_received_ && !writing_ && !std::exchange(done_, true)) StartWritesDone();
  }

  /// The call has ended; no operation may start after this one.
  void closed() {
    closed_ = true;
    ErrorCode ignored;
    socket_.close(ignored);
    RemoveHold();
  }

  const std::shared_ptr<Shared> shared_;
  const v1::OpenTunnel order_;
  tcp::socket socket_;
  asio::posix::stream_descriptor asked_;  ///< to process 1 of a task with a network of its own
  asio::steady_timer timer_;
  std::shared_ptr<Carrier> carrier_;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  v1::TunnelMessage incoming_, outgoing_;
  std::array<char, kPiece> piece_;
  bool opened_ = false, writing_ = false, end_sent_ = false, end_received_ = false, done_ = false,
       closed_ = false;
  /// Keeps the I/O thread until gRPC has ended the call.
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> guard_;
  std::shared_ptr<Tunnel> self_;
};

std::shared_ptr<Carrier> Tunnels::Shared::carrier() {
  for (const auto& each : carriers)
    if (each->tunnels < kTunnelsPerChannel) return each;
  const auto channel = open_channel(master, trust, true);
  if (!channel) {
    log::warn("no connection for a tunnel", {{"reason", channel.error().message}});
    return nullptr;
  }
  carriers.push_back(std::make_shared<Carrier>(Carrier{*channel}));
  return carriers.back();
}

Tunnels::Tunnels(std::string master, MasterTrust trust, std::string agent_id)
    : shared_(std::make_shared<Shared>(std::move(master), std::move(trust), std::move(agent_id))) {
  shared_->thread = std::thread([shared = shared_.get()] { shared->io.run(); });
}

Tunnels::~Tunnels() {
  asio::post(shared_->io, [shared = shared_.get()] {
    for (Shared::Tunnel* const tunnel : shared->tunnels) tunnel->cancel();
    shared->closing = true;
    shared->work.reset();
  });
  shared_->thread.join();
}

void Tunnels::open(const v1::OpenTunnel& order, uid_t uid) {
  asio::post(shared_->io, [shared = shared_, order, uid] {
    std::make_shared<Shared::Tunnel>(shared, order)->connect(uid);
  });
}

void Tunnels::open_inside(const v1::OpenTunnel& order, const std::string& directory) {
  asio::post(shared_->io, [shared = shared_, order, directory] {
    std::make_shared<Shared::Tunnel>(shared, order)->connect_inside(directory);
  });
}

void Tunnels::refuse(const v1::OpenTunnel& order, const std::string& error) {
  asio::post(shared_->io, [shared = shared_, order, error] {
    std::make_shared<Shared::Tunnel>(shared, order)->answer(error);
  });
}

}  // namespace det::agent
