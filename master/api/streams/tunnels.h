// Tunnels: connections from users to ports of tasks, to shells and to SSH servers in them. The master never
// connects to an agent: it orders a tunnel on the agent's link, and the agent calls AgentService.Tunnel.
// State belongs to the edge worker.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "det/v1/tunnel.pb.h"
#include "master/loop/budget.h"

namespace det::api {

struct Context;
class AgentEnd;
class CallerEnd;

/// Tunnels open at once: in total, and of one user.
inline constexpr std::int64_t kTunnels = 1024, kTunnelsPerCaller = 64;
/// Time for the agent to answer an order.
inline constexpr Duration kTunnelAnswerTime = std::chrono::seconds(15);
/// Connections to the SSH servers of one task whose logins may not be complete.
inline constexpr int kSshLogins = 8;
/// Time after which det-task-ssh has ended a connection without a login (20 s), with the time of its start.
inline constexpr Duration kSshLoginTime = std::chrono::seconds(25);
/// Calls without a login that look for their task at once.
inline constexpr std::int64_t kSshLookups = 16;
/// A tunnel without data for this long is closed.
inline constexpr Duration kTunnelIdleTime = std::chrono::minutes(10);

/// Pairs calls of users with calls of agents, and passes data between them. At most one message of 64 KiB per
/// direction is held: a side that does not read stops the other one by flow control.
class Tunnels {
 public:
  using Reactor = grpc::ServerBidiReactor<v1::TunnelMessage, v1::TunnelMessage>;
  /// Sends an order on an agent's link. Returns false when the agent is not connected. Runs on the edge
  /// worker.
  using Order = std::function<bool(const AgentId& agent, const v1::OpenTunnel& order)>;

  Tunnels(const Context& context, Order order);

  /// Serves a call of TaskService.Connect. Any thread.
  Reactor* connect(grpc::CallbackServerContext* call);
  /// Serves a call of TaskService.ConnectSsh. Any thread.
  Reactor* connect_ssh(grpc::CallbackServerContext* call);
  /// Serves a call of AgentService.Tunnel. Any thread.
  Reactor* accept(grpc::CallbackServerContext* call);

  // Edge worker only.

  /// Closes tunnels that are idle, and those without an answer of the agent.
  void tick(MonoTime now);
  /// Closes all tunnels and refuses new ones.
  void close();

 private:
  friend class AgentEnd;
  friend class CallerEnd;
  /// Connections to SSH servers of an allocation whose logins may not be complete.
  int ssh_logins(const AllocationId& allocation) const;

  const Context& context_;
  const Order order_;
  loop::Budget budget_{kTunnels, kTunnelsPerCaller};
  loop::Budget lookups_{kSshLookups, kSshLookups};
  /// The caller's end of each tunnel, by tunnel id.
  std::map<std::string, std::weak_ptr<CallerEnd>> callers_;
  bool closed_ = false;
};

}  // namespace det::api
