// AgentService: one bidirectional stream per agent for heartbeats, commands and state updates. Code
// archives and logs (agent_bulk.cc) are separate calls. Link state lives on the edge worker.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "det/v1/agent.pb.h"
#include "master/api/auth/agent_auth.h"
#include "master/api/service.h"
#include "master/api/streams/storage_calls.h"
#include "master/api/streams/tunnels.h"

namespace det::api {

class AgentLink;

/// Sends commands of the core to agents and forwards their updates to the core.
class AgentService final : public Service {
 public:
  explicit AgentService(const Context& context);
  /// The agent's stream: Hello, answered by Welcome or an error, then messages both ways in any order. A new
  /// Hello needs a new stream.
  grpc::ServerBidiReactor<v1::AgentMessage, v1::AgentCommand>* Link(grpc::CallbackServerContext* call);
  /// Streams the code archive with the requested digest in chunks of at most 1 MiB. Errors:
  /// kNotFound.
  grpc::ServerWriteReactor<v1::GetContextResponse>* GetContext(grpc::CallbackServerContext* call,
                                                               const Unread<v1::GetContextRequest>& request);
  /// Stores a batch of log lines and replies when they are durable. Idempotent: lines are keyed by allocation
  /// and line number. At most 10,000 lines; longer lines than 64 KiB are cut.
  void ShipLogs(const Deferred& call, const v1::ShipLogsRequest* request, v1::ShipLogsResponse* response);

  /// The agent's end of a tunnel (tunnels.h).
  grpc::ServerBidiReactor<v1::TunnelMessage, v1::TunnelMessage>* Tunnel(grpc::CallbackServerContext* call);

  Tunnels& tunnels() { return tunnels_; }
  /// Send a command if its session is still the current one of the agent. Otherwise the command is dropped:
  /// the core is notified of the lost link and sends it again. Any thread; do not block.
  void start(const core::StartAllocation& command);
  void kill(core::KillAllocation command);
  void forget(core::AllocationForgotten command);
  void check(const core::CheckSlot& command);
  /// Runs storage work (removal, listing) on an agent that can reach the storage. Blocks for at most 60 s;
  /// must not be called on the edge worker. Errors: kUnavailable when the agent is not connected,
  /// kDeadlineExceeded.
  Result<storage::Done> ask(const AgentId& agent, const storage::Work& work);
  /// Agents with an open link. Blocks for at most 10 s, then returns an empty list. Not on the edge worker.
  std::vector<AgentId> connected();
  /// Closes links after three missed heartbeats. Checks certificates again every 5 s and when rights have
  /// changed. Called on the edge worker several times a second.
  void tick();
  /// Closes all links and refuses new ones. Called on the edge worker.
  void close();

 private:
  friend class AgentLink;
  void send(const AgentId& agent, std::uint64_t session, v1::AgentCommand command);
  // All members below belong to the edge worker.
  std::map<std::uint64_t, std::weak_ptr<AgentLink>> links_;  ///< by session
  std::uint64_t next_session_ = 1;
  StorageCalls storage_calls_{context_.edge};
  /// Returns the newest live link of an agent. Session 0 and null when it has none.
  std::pair<std::uint64_t, std::shared_ptr<AgentLink>> link_of(const AgentId& agent) const;
  Tunnels tunnels_;
  bool closed_ = false;
  std::uint64_t rights_ = 0;  ///< Sessions::generation() at the last certificate check
  MonoTime next_check_;
};

/// Whether text may be the id of an agent or the name of something on it: 1 to `longest` bytes of UTF-8
/// without control characters (logs and terminals print it).
bool is_agent_name(const std::string& text, std::size_t longest);

/// Task id of an allocation id: "<task>.<run>" without the run.
TaskId task_of(const AllocationId& id);

}  // namespace det::api
