// Stream to the master: reconnects with back-off and jitter, sends heartbeats, treats silence as a failure.
// All calls come from one thread. gRPC threads only push LinkEvents through `sink`, which must hand them to
// that thread.
#pragma once

#include <grpcpp/channel.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/client/channel.h"
#include "det/v1/agent.pb.h"

namespace det::agent {

/// A command arrived on the stream of this session.
struct LinkRead {
  std::uint64_t session = 0;
  std::shared_ptr<v1::AgentCommand> command;  ///< null: the stream has ended
};
/// A message was written.
struct LinkWritten {
  std::uint64_t session = 0;
};
/// A stream is closed and gRPC has released it.
struct LinkClosed {
  std::uint64_t session = 0;
  int code = 0;  ///< gRPC status code
  std::string message;
};
using LinkEvent = std::variant<LinkRead, LinkWritten, LinkClosed>;

/// Opens the channel used for all calls to the master. HTTP proxies are ignored. Connects lazily. Every call
/// carries `trust.own_token`. `separate`: the channel shares no connection with others. Errors: a file of
/// `trust` is unreadable.
Result<std::shared_ptr<grpc::Channel>> open_channel(const std::string& master, const MasterTrust& trust = {},
                                                    bool separate = false);

/// Returns the delay before the next attempt to connect, without its jitter. `before`: the last one, 0 after
/// a Welcome. `refused`: the master rejected this agent. At least kAttempts attempts fall into a lease: an
/// outage that is shorter must not end allocations.
Duration retry_delay(Duration before, bool refused, Duration lease);
inline constexpr int kAttempts = 12;

/// The stream, with at most one session at a time. Events of older sessions are ignored.
class Link {
 public:
  using Sink = std::function<void(LinkEvent)>;
  /// `hello` returns the first message of each new stream. `seed`: for the jitter of the back-off.
  Link(std::shared_ptr<grpc::Channel> channel, Sink sink, std::function<v1::Hello()> hello,
       std::uint64_t seed);
  ~Link();

  /// Opens a stream when the back-off is over, sends due heartbeats, cancels a silent stream.
  void tick(MonoTime now);
  /// Returns when tick() must be called next.
  MonoTime next_deadline() const;
  /// Returns the command, or null for the end of the stream and for stale events. A Welcome makes the link
  /// live.
  std::shared_ptr<v1::AgentCommand> handle(const LinkRead& event, MonoTime now);
  void handle(const LinkWritten& event);
  /// Schedules the next attempt. Returns true if the session had become live.
  bool handle(const LinkClosed& event, MonoTime now);
  bool live() const { return live_; }
  /// Number of the current or latest session.
  std::uint64_t session() const { return session_; }
  /// Queues a message. Drops it if the link is not live: the Hello of the next session repeats all state.
  void send(v1::AgentMessage message);
  /// Ends the stream after the queued messages and `last`, and never reopens it. Non-blocking; closed()
  /// reports completion. A stream that is not live ends at once without `last`; with it, the master gets it
  /// behind the Hello, because it may be about to accept the agent.
  void close(std::optional<v1::AgentMessage> last = std::nullopt);
  bool closed() const { return closing_ && !stream_; }

 private:
  class Stream;
  // Starts a session with Hello as its first message.
  void open(MonoTime now);
  // Writes the next queued message, or half-closes after the last one.
  void write_next();

  const std::shared_ptr<grpc::Channel> channel_;
  const Sink sink_;
  const std::function<v1::Hello()> hello_;
  Random random_;
  std::shared_ptr<Stream> stream_;  ///< null between two attempts
  std::uint64_t session_ = 0;
  /// The first is in flight while writing_.
  std::deque<v1::AgentMessage> outgoing_;
  bool writing_ = false, live_ = false, was_live_ = false, closing_ = false, ended_ = false,
       half_closed_ = false;
  /// Period of heartbeats, from the Welcome.
  Duration heartbeat_{};
  /// From the Welcome.
  Duration lease_ = std::chrono::minutes(1);
  /// Current back-off; 0 after a Welcome.
  Duration retry_{};
  MonoTime open_at_, beat_at_, heard_;
  std::string last_trouble_;  ///< logged once
};

}  // namespace det::agent
