// Authentication of agents. With TLS an agent is identified by its client certificate, without TLS by a
// token. Both are issued for a join token, to one agent id.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/crypto/peer.h"
#include "master/db/pg/pool.h"

namespace det::api {

/// The remote end of a call of an agent.
struct AgentPeer : Peer {
  std::string token;  ///< metadata `x-agent-token`, without "Bearer "; used without TLS
};

/// An authenticated agent.
struct AgentCaller {
  std::string address;
  AgentId agent;     ///< id that its certificate or token was issued for
  std::string pool;  ///< pool of its join token; "": the agent chooses in its Hello
  /// Errors: kPermissionDenied when the certificate or token was issued for another agent id.
  Status check_name(const std::string& name) const;
};

/// Returns address, client certificate and token of the remote end of a call.
AgentPeer peer_of(const grpc::ServerContextBase& context);
/// Checks the connection alone, without a database query. Errors: kPermissionDenied with a hint: remote agent
/// without TLS, no token, no certificate, expired certificate or foreign authority.
Status may_be_agent(const AgentPeer& peer);
/// may_be_agent(), then looks the certificate or token up. Blocks on the database. Errors: kPermissionDenied
/// for unknown, expired and revoked ones, and those of the database.
Result<AgentCaller> authorize_agent(const AgentPeer& peer, db::Pool& pool);

/// Key of an agent's token in the table of agent certificates. Differs from every certificate's fingerprint.
std::string agent_token_fingerprint(std::string_view token);

}  // namespace det::api
