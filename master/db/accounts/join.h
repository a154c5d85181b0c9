// Join tokens, and the certificates and tokens of agents. The API hashes tokens and signs certificates.
#pragma once

#include "master/db/queries/page.h"

namespace det::db {

/// A token that lets agents join the cluster.
struct JoinToken {
  std::int64_t id = 0;
  /// Pool and agent id that the token is restricted to; "" means any.
  std::string pool, agent;
  /// Remaining joins; 0 keeps the row for retries only.
  std::int64_t uses_left = 1;
  WallTime created, expires;
  std::string created_by;
};
/// Creates a token and returns it with id and times filled in.
Result<JoinToken> create_join_token(Pool& pool, JoinToken token, const std::string& token_hash,
                                    Duration lifetime);
/// Lists the tokens that are valid and have uses left, by id.
Result<std::vector<JoinToken>> list_join_tokens(Pool& pool);
/// Revokes a join token. kNotFound.
Status delete_join_token(Pool& pool, std::int64_t id);
/// Checks that a token may still admit an agent, without consuming a use. Errors: kUnauthenticated (the token
/// is unknown or expired).
Status check_join_token(Pool& pool, const std::string& token_hash);
/// Deletes tokens and certificates that expired more than 30 days ago.
Status delete_expired_joins(Pool& pool);

/// A certificate issued to an agent, or the token of an agent that connects without TLS.
struct AgentCertificate {
  /// Digest of the certificate or token; the primary key.
  std::string fingerprint;
  AgentId agent;
  /// Digest of the public key. It stays the same across renewals. Of a token: its fingerprint.
  std::string key_digest;
  std::string pool;  ///< Pool that the join token was bound to; "" for any.
  WallTime expires;
};
/// Consumes one use of a token and stores the certificate, in one transaction. A retry by the same agent with
/// the same key consumes nothing. The pool comes from the token. Errors: kUnauthenticated (the token is
/// unknown, used up or expired); kPermissionDenied (the token is bound to another agent); kAlreadyExists
/// (another key holds a valid certificate for this agent id).
Status admit_agent(Pool& pool, const std::string& token_hash, const AgentCertificate& certificate);
/// Stores the certificate of an agent that has presented the join token of the master's machine. Idempotent
/// for the same fingerprint. Several keys may hold one id, because the token belongs to the operator of the
/// machine. kAlreadyExists: a key that joined with another token holds a valid certificate for this agent id.
Status admit_local_agent(Pool& pool, const AgentCertificate& certificate);
/// Stores another certificate of an agent for the same key; the pool is copied from the previous one.
/// kPermissionDenied: the agent has no valid certificate for this key.
Status renew_agent(Pool& pool, const AgentCertificate& certificate);
/// Finds a certificate by fingerprint. An expired certificate is accepted while the agent holds a valid one
/// for the same key. Errors: kNotFound; kPermissionDenied (revoked or expired).
Result<AgentCertificate> find_agent_certificate(Pool& pool, const std::string& fingerprint);
/// Revokes all certificates of an agent. Idempotent; succeeds when it has none.
Status revoke_agent(Pool& pool, const AgentId& agent);

}  // namespace det::db
