// Owns AgentService: one stream per agent, its heartbeats, the commands down; contexts and logs beside it.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <vector>

#include "det/v1/agent.pb.h"
#include "master/api/agent_auth.h"
#include "master/api/service.h"
#include "storage/work.h"

namespace det::api {

class AgentLink;

class AgentService final : public Service {
 public:
  explicit AgentService(const Context& context);
  grpc::ServerBidiReactor<v1::AgentMessage, v1::AgentCommand>* Link(grpc::CallbackServerContext* call);
  grpc::ServerWriteReactor<v1::GetContextResponse>* GetContext(grpc::CallbackServerContext* call,
                                                               const v1::GetContextRequest* request);
  grpc::ServerUnaryReactor* ShipLogs(grpc::CallbackServerContext* call, const v1::ShipLogsRequest* request,
                                     v1::ShipLogsResponse* response);

  /// Passes a command on when that session is still the agent's; else drops it (the core learns of the lost
  /// link and sends again). Any thread.
  void start(core::StartAllocation command);
  void kill(core::KillAllocation command);
  void forget(core::AllocationForgotten command);
  /// Work on a storage that the agent reaches. Waits for the answer, a minute at most: not on the edge
  /// worker. kUnavailable when the agent is not connected, kDeadlineExceeded.
  Result<storage::Done> ask(const AgentId& agent, const storage::Work& work);
  /// Not on the edge worker.
  std::vector<AgentId> connected();
  /// Drops agents that have missed three heartbeats. On the edge worker, several times a second.
  void tick();
  /// Ends all links. On the edge worker.
  void close();

 private:
  friend class AgentLink;
  void send(const AgentId& agent, std::uint64_t session, v1::AgentCommand command);
  // The edge worker's own.
  std::map<std::uint64_t, std::weak_ptr<AgentLink>> links_;  ///< by session
  std::uint64_t next_session_ = 1;
  using Answer = std::shared_ptr<std::promise<Result<storage::Done>>>;
  std::map<std::int64_t, std::pair<std::uint64_t, Answer>>
      asked_;  ///< by number of the work: whom, and who waits
  std::int64_t next_work_ = 1;
  void answer(std::uint64_t session, const v1::StorageDone& done);
  void give_up(std::uint64_t session);
  std::pair<std::uint64_t, std::shared_ptr<AgentLink>> link_of(const AgentId& agent) const;
  bool closed_ = false;
  std::uint64_t rights_ = 0;  ///< generation that links were last looked at for
  MonoTime next_look_;
};

/// What an agent may call itself and its things: some text, short, and nothing that a terminal obeys.
bool is_agent_name(const std::string& text, std::size_t longest);

/// The task of an allocation: its id without the run number.
TaskId task_of(const AllocationId& id);

}  // namespace det::api
