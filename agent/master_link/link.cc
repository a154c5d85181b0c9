#include "agent/master_link/link.h"

#include <grpcpp/create_channel.h>

#include <algorithm>

#include "common/base/log.h"
#include "common/client/calls.h"
#include "det/v1/agent.methods.h"

namespace det::agent {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstRetry = 200ms, kLastRetry = 5s;
constexpr Duration kWelcomeTimeout = 20s;  // for the connection and the master's Welcome
constexpr int kMissedHeartbeats = 3;

/// Adds the agent's token to each call. gRPC's own call credentials are refused on plain-text channels.
class TokenSender final : public grpc::experimental::Interceptor {
 public:
  explicit TokenSender(const std::string& token) : header_("Bearer " + token) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* call) override {
    if (call->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::PRE_SEND_INITIAL_METADATA))
      call->GetSendInitialMetadata()->emplace("x-agent-token", header_);
    call->Proceed();
  }

 private:
  const std::string header_;
};

class TokenSenders final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenSenders(std::string token) : token_(std::move(token)) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(grpc::experimental::ClientRpcInfo*) override {
    return new TokenSender(token_);
  }

 private:
  const std::string token_;
};

}  // namespace

Result<std::shared_ptr<grpc::Channel>> open_channel(const std::string& master, const MasterTrust& trust,
                                                    bool separate) {
  grpc::ChannelArguments arguments;
  if (separate) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);  // limit of one connection attempt
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  TRY_ASSIGN(const auto credentials, channel_credentials(trust, arguments));
  if (trust.own_token.empty())
    return grpc::CreateCustomChannel(without_scheme(master), credentials, arguments);
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> senders;
  senders.push_back(std::make_unique<TokenSenders>(trust.own_token));
  return grpc::experimental::CreateCustomChannelWithInterceptors(without_scheme(master), credentials,
                                                                 arguments, std::move(senders));
}

Duration retry_delay(Duration before, bool refused, Duration lease) {
  const Duration last = std::clamp<Duration>(lease / kAttempts, kFirstRetry, kLastRetry);
  // A refusal takes time to resolve: an old session lingers, a device list is restored, a lease expires.
  return refused ? last : std::clamp<Duration>(before * 2, kFirstRetry, last);
}

/// One stream. Keeps itself alive until gRPC has finished with it.
class Link::Stream : public grpc::ClientBidiReactor<v1::AgentMessage, v1::AgentCommand>,
                     public std::enable_shared_from_this<Link::Stream> {
 public:
  Stream(std::shared_ptr<grpc::Channel> channel, Sink sink, std::uint64_t session)
      : channel_(std::move(channel)), sink_(std::move(sink)), session_(session) {}

  void start() {
    self_ = shared_from_this();
    wire::bind(channel_, v1::AgentService::Link, context_, this);
    // The link writes from its own thread. Without a hold, the call could complete in between.
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }
  void write(const v1::AgentMessage& message) { StartWrite(&message); }
  void half_close() { StartWritesDone(); }
  void cancel() { context_.TryCancel(); }
  /// Ends the hold. No call on this object may follow.
  void release() { RemoveHold(); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return sink_(LinkRead{session_, nullptr});
    sink_(LinkRead{session_, std::make_shared<v1::AgentCommand>(std::move(incoming_))});
    incoming_.Clear();
    StartRead(&incoming_);
  }
  void OnWriteDone(bool) override { sink_(LinkWritten{session_}); }
  void OnDone(const grpc::Status& status) override {
    // The last reference, and with it perhaps the channel, goes on the thread of the link: gRPC may end with
    // the process before its own thread has released a channel. This object may be gone after the reset.
    const Sink sink = sink_;
    LinkClosed closed{session_, status.error_code(), status.error_message()};
    self_.reset();
    sink(std::move(closed));
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const Sink sink_;
  const std::uint64_t session_;
  grpc::ClientContext context_;
  v1::AgentCommand incoming_;
  std::shared_ptr<Stream> self_;
};

Link::Link(std::shared_ptr<grpc::Channel> channel, Sink sink, std::function<v1::Hello()> hello,
           std::uint64_t seed)
    : channel_(std::move(channel)),
      sink_(std::move(sink)),
      hello_(std::move(hello)),
      random_{seed},
      open_at_(mono_now()) {}

Link::~Link() {
  if (!stream_) return;
  stream_->cancel();
  if (!ended_) stream_->release();
}

void Link::open(MonoTime now) {
  ++session_;
  // Messages of the old session are obsolete: Hello carries the current state.
  outgoing_.clear();
  writing_ = live_ = was_live_ = ended_ = half_closed_ = false;
  heard_ = now;
  stream_ = std::make_shared<Stream>(channel_, sink_, session_);
  stream_->start();
  v1::AgentMessage message;
  *message.mutable_hello() = hello_();
  outgoing_.push_back(std::move(message));
  write_next();
}

void Link::tick(MonoTime now) {
  if (!stream_) {
    if (!closing_ && now >= open_at_) open(now);
    return;
  }
  if (ended_) return;
  // Three missed heartbeats of the master.
  if (now - heard_ >= (live_ ? heartbeat_ * kMissedHeartbeats : kWelcomeTimeout)) {
    // Restarting the silence keeps the cancellation from repeating on every tick.
    stream_->cancel();
    heard_ = now;
    return;
  }
  if (live_ && !closing_ && now >= beat_at_) {
    beat_at_ = now + heartbeat_;
    v1::AgentMessage message;
    message.mutable_heartbeat();
    send(std::move(message));
  }
}

MonoTime Link::next_deadline() const {
  if (!stream_) return closing_ ? open_at_ + 1h : open_at_;
  if (!live_) return heard_ + kWelcomeTimeout;
  return std::min(beat_at_, heard_ + heartbeat_ * kMissedHeartbeats);
}

std::shared_ptr<v1::AgentCommand> Link::handle(const LinkRead& event, MonoTime now) {
  if (event.session != session_ || !stream_) return nullptr;
  if (!event.command) {
    live_ = false;
    if (!ended_) {
      ended_ = true;
      stream_->release();
    }
    return nullptr;
  }
  heard_ = now;
  if (event.command->has_welcome()) {
    live_ = was_live_ = true;
    retry_ = Duration(0);
    last_trouble_.clear();
    heartbeat_ = std::chrono::seconds(std::max(1, event.command->welcome().heartbeat_seconds()));
    lease_ = std::chrono::seconds(event.command->welcome().lease_seconds());
    beat_at_ = now + heartbeat_;
  }
  return event.command;
}

void Link::handle(const LinkWritten& event) {
  if (event.session != session_ || !stream_) return;
  writing_ = false;
  outgoing_.pop_front();
  write_next();
}

bool Link::handle(const LinkClosed& event, MonoTime now) {
  if (event.session != session_ || !stream_) return false;
  live_ = false;
  stream_.reset();
  const bool refused = event.code != grpc::OK && event.code != grpc::UNAVAILABLE &&
                       event.code != grpc::CANCELLED && event.code != grpc::DEADLINE_EXCEEDED;
  retry_ = retry_delay(retry_, refused, lease_);
  // Jitter of ±25 % spreads the agents after a restart of the master.
  open_at_ = now + std::chrono::duration_cast<Duration>(retry_ * (0.75 + 0.5 * random_.uniform()));
  if (!closing_ && event.message != last_trouble_) {
    log::write(refused ? LogLevel::kError : LogLevel::kWarning,
               refused ? "the master rejected this agent; retrying" : "no connection to the master; retrying",
               {{"reason", event.message}});
  }
  last_trouble_ = event.message;
  return was_live_;
}

void Link::send(v1::AgentMessage message) {
  if (!live_ || ended_ || half_closed_) return;
  outgoing_.push_back(std::move(message));
  write_next();
}

void Link::write_next() {
  if (writing_ || ended_ || !stream_) return;
  if (!outgoing_.empty()) {
    writing_ = true;
    stream_->write(outgoing_.front());
  } else if (closing_ && !half_closed_) {
    half_closed_ = true;
    stream_->half_close();
  }
}

void Link::close(std::optional<v1::AgentMessage> last) {
  closing_ = true;
  if (last && stream_ && !ended_ && !half_closed_) {
    outgoing_.push_back(std::move(*last));
  } else if (stream_ && !live_) {
    stream_->cancel();
  }
  write_next();
}

}  // namespace det::agent
