// Authentication of agents. With TLS an agent is identified by its client certificate. Without TLS only
// agents on loopback are accepted, under any name.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/crypto/peer.h"
#include "master/db/pg/pool.h"

namespace det::api {

/// An authenticated agent.
struct AgentCaller {
  std::string address;
  std::optional<AgentId> agent;  ///< from its certificate; none without TLS
  std::string pool;              ///< pool of its join token; "": the agent chooses in its Hello
  /// Errors: kPermissionDenied when the certificate was issued for another agent id. Always OK without TLS.
  Status check_name(const std::string& name) const;
};

/// Returns address and client certificate of the remote end of a call.
Peer peer_of(const grpc::ServerContextBase& context);
/// Checks the connection alone, without a database query. Errors: kPermissionDenied with a hint: remote agent
/// without TLS, no certificate, expired certificate or foreign authority.
Status may_be_agent(const Peer& peer);
/// may_be_agent(), then looks the certificate up. Blocks on the database. Errors: kPermissionDenied for
/// unknown, expired and revoked certificates, and those of the database.
Result<AgentCaller> authorize_agent(const Peer& peer, db::Pool& pool);

}  // namespace det::api
