// Owns the stream to the master: opened again for ever, with growing pauses; heartbeats; silence means it is
// dead. All calls come on one thread; gRPC's threads only push LinkEvents through `sink`, which brings them
// back to it.
#pragma once

#include <grpcpp/channel.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/random.h"
#include "det/v1/agent.pb.h"
#include "wire/channel.h"

namespace det::agent {

struct LinkRead {
  std::uint64_t session = 0;
  std::shared_ptr<v1::AgentCommand> command;  ///< null: the stream has ended
};
struct LinkWritten {
  std::uint64_t session = 0;
};
struct LinkClosed {
  std::uint64_t session = 0;
  int code = 0;  ///< gRPC's
  std::string message;
};
using LinkEvent = std::variant<LinkRead, LinkWritten, LinkClosed>;

/// Channel to `master` for everything the agent says. Never through a proxy. Fails when a file of `trust`
/// cannot be read.
Result<std::shared_ptr<grpc::Channel>> open_channel(const std::string& master, const MasterTrust& trust = {});

class Link {
 public:
  using Sink = std::function<void(LinkEvent)>;
  /// `hello` is asked whenever a stream opens.
  Link(std::shared_ptr<grpc::Channel> channel, Sink sink, std::function<v1::Hello()> hello,
       std::uint64_t seed);
  ~Link();

  /// Opens when it is time, sends heartbeats, gives up a silent stream.
  void tick(MonoTime now);
  MonoTime next_deadline() const;
  /// The command that came, if one did. A Welcome makes the link live.
  std::shared_ptr<v1::AgentCommand> handle(const LinkRead& event, MonoTime now);
  void handle(const LinkWritten& event);
  /// True when the link had become live.
  bool handle(const LinkClosed& event, MonoTime now);
  bool live() const { return live_; }
  /// Dropped when the link is not live: what matters is said again in Hello.
  void send(v1::AgentMessage message);
  /// Ends the stream after what is queued, for good; closed() says when.
  void close();
  bool closed() const { return closing_ && !stream_; }

 private:
  class Stream;
  void open(MonoTime now);
  void write_next();

  const std::shared_ptr<grpc::Channel> channel_;
  const Sink sink_;
  const std::function<v1::Hello()> hello_;
  Random random_;
  std::shared_ptr<Stream> stream_;  ///< null between two tries
  std::uint64_t session_ = 0;
  std::deque<v1::AgentMessage> outgoing_;  ///< the first is being written while writing_
  bool writing_ = false, live_ = false, was_live_ = false, closing_ = false, ended_ = false,
       half_closed_ = false;
  Duration heartbeat_{};
  Duration retry_{};
  MonoTime open_at_, beat_at_, heard_;
  std::string last_trouble_;  ///< said once
};

}  // namespace det::agent
