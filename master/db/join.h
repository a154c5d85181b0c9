// Owns the rows of join tokens and of agents' certificates. Hashing tokens and signing are the API's.
#pragma once

#include "master/db/queries.h"

namespace det::db {

struct JoinToken {
  std::int64_t id = 0;
  std::string pool, agent;  ///< what it is bound to; "": nothing
  std::int64_t uses_left = 1;
  WallTime created, expires;
  std::string created_by;
};
/// Fills in id and the times.
Result<JoinToken> create_join_token(Pool& pool, JoinToken token, const std::string& token_hash,
                                    Duration lifetime);
/// Those with uses left, in order of id.
Result<std::vector<JoinToken>> list_join_tokens(Pool& pool);
/// kNotFound.
Status delete_join_token(Pool& pool, std::int64_t id);
/// Those that ended more than 30 days ago, and certificates likewise.
Status delete_expired_joins(Pool& pool);

struct AgentCertificate {
  std::string fingerprint;
  AgentId agent;
  std::string key_digest;
  std::string pool;  ///< what the token said
  WallTime expires;
};
/// Uses up one use of the token and keeps the certificate, both or neither; a repeat by the same agent with
/// the same key uses up nothing. kUnauthenticated, kPermissionDenied, kAlreadyExists as JoinService.Join
/// says.
Status admit_agent(Pool& pool, const std::string& token_hash, const AgentCertificate& certificate);
/// Another certificate of an agent that has one for the same key. kPermissionDenied when it has none any
/// more.
Status renew_agent(Pool& pool, const AgentCertificate& certificate);
/// Whose certificate it is, while the agent has one for the same key that is good. kNotFound;
/// kPermissionDenied when it is revoked or over.
Result<AgentCertificate> find_agent_certificate(Pool& pool, const std::string& fingerprint);
/// No failure when it has none. Repeats safely.
Status revoke_agent(Pool& pool, const AgentId& agent);

}  // namespace det::db
