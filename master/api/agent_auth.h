// Owns who an agent is: on loopback without TLS whoever it says, otherwise whom its certificate names.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/peer.h"
#include "base/result.h"
#include "master/db/pool.h"

namespace det::api {

struct AgentCaller {
  std::string address;
  std::optional<AgentId> agent;  ///< by its certificate; none: it came without TLS
  std::string pool;              ///< where its join token put it; "": where it says
  /// kPermissionDenied when it calls itself otherwise than its certificate does.
  Status check_name(const std::string& name) const;
};

/// What is known of the far end of a call's connection.
Peer peer_of(const grpc::ServerContextBase& context);
/// What can be said of an agent without asking the database. kPermissionDenied names the mend.
Status may_be_agent(const Peer& peer);
/// kPermissionDenied for whoever is no agent of this cluster, or is none any more.
Result<AgentCaller> authorize_agent(const Peer& peer, db::Pool& pool);

}  // namespace det::api
