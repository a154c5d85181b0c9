// States of a tunnel: connecting → answered → open → closed. All of it runs on the I/O thread; gRPC's threads
// only post to it.
#include "agent/master_link/tunnels.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "agent/master_link/link.h"
#include "agent/master_link/tunnel_end.h"
#include "common/base/log.h"
#include "common/client/calls.h"
#include "det/v1/agent.methods.h"

namespace det::agent {
namespace {

namespace asio = boost::asio;

// The master admits 100 streams per connection.
constexpr int kTunnelsPerChannel = 64;

/// A connection to the master and the number of its tunnels.
struct Carrier {
  std::shared_ptr<grpc::Channel> channel;
  int tunnels = 0;
};

}  // namespace

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
  Tunnel(std::shared_ptr<Shared> shared, v1::OpenTunnel order, std::shared_ptr<TunnelEnd> end)
      : shared_(std::move(shared)), order_(std::move(order)), end_(std::move(end)) {}
  ~Tunnel() override { shared_->tunnels.erase(this); }

  void connect() {
    end_->connect([self = shared_from_this()](const std::string& error) { self->answer(error); });
  }

  /// Calls the master. `error`: why there is no tunnel; "" for an open one.
  void answer(const std::string& error) {
    if (shared_->closing) return;
    carrier_ = shared_->carrier();
    // Without an answer the master closes the tunnel by its own time limit.
    if (!carrier_) return;
    guard_.emplace(shared_->io.get_executor());
    ++carrier_->tunnels;
    self_ = shared_from_this();
    shared_->tunnels.insert(this);
    v1::TunnelAnswer* message = outgoing_.mutable_answer();
    message->set_tunnel_id(order_.tunnel_id());
    message->set_agent_id(shared_->agent_id);
    message->set_error(error);
    wire::bind(carrier_->channel, v1::AgentService::Tunnel, context_, this);
    // Writes start on the I/O thread; the hold keeps the call from completing in between.
    AddHold();
    writing_ = true;
    StartWrite(&outgoing_);
    StartRead(&incoming_);
    StartCall();
  }
  void cancel() { context_.TryCancel(); }

 private:
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
      if (!writing_) read_end();
    } else if (incoming_.has_data() || incoming_.has_end() || incoming_.has_size()) {
      return end_->write(incoming_, [self = shared_from_this()](bool ok) {
        if (!ok) self->cancel();
        if (ok && self->incoming_.has_end()) {
          self->end_received_ = true;
          self->finish_if_ended();
        }
        // The read of a canceled call reports its end.
        self->StartRead(&self->incoming_);
      });
    }
    StartRead(&incoming_);
  }

  /// Reads the next message of the task's side.
  void read_end() {
    end_->read(outgoing_, [self = shared_from_this()](bool ok) {
      if (!ok) return self->cancel();
      // Nothing is written to a shell that has ended.
      if (self->outgoing_.has_exit()) self->end_received_ = true;
      self->end_sent_ = self->outgoing_.has_end() || self->outgoing_.has_exit();
      self->writing_ = true;
      self->StartWrite(&self->outgoing_);
    });
  }

  void written(bool ok) {
    writing_ = false;
    if (!ok || closed_) return;
    if (end_sent_) return finish_if_ended();
    if (opened_) read_end();
  }

  /// Ends the call when both directions have ended.
  void finish_if_ended() {
    if (end_sent_ && end_received_ && !writing_ && !std::exchange(done_, true)) StartWritesDone();
  }

  /// The call has ended; no operation may start after this one.
  void closed() {
    closed_ = true;
    end_->close();
    RemoveHold();
  }

  const std::shared_ptr<Shared> shared_;
  const v1::OpenTunnel order_;
  const std::shared_ptr<TunnelEnd> end_;
  std::shared_ptr<Carrier> carrier_;
  grpc::ClientContext context_;
  v1::TunnelMessage incoming_, outgoing_;
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

void Tunnels::open(const v1::OpenTunnel& order, std::optional<uid_t> uid, const TaskDir& dir) {
  asio::post(shared_->io, [shared = shared_, order, uid, dir] {
    auto end = !order.ssh_key().empty() ? make_ssh_end(shared->io, order.ssh_key(), dir)
               : order.has_shell()      ? make_shell_end(shared->io, order.shell(), dir)
                                        : make_port_end(shared->io, order.port(), uid, dir);
    std::make_shared<Shared::Tunnel>(shared, order, std::move(end))->connect();
  });
}

void Tunnels::refuse(const v1::OpenTunnel& order, const std::string& error) {
  asio::post(shared_->io, [shared = shared_, order, error] {
    // Never connected.
    auto end = make_port_end(shared->io, 0, uid_t{0}, TaskDir(""));
    std::make_shared<Shared::Tunnel>(shared, order, std::move(end))->answer(error);
  });
}

}  // namespace det::agent
