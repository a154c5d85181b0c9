#include "master/db/accounts/join.h"

namespace det::db {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Status insert(Connection& connection, const AgentCertificate& certificate, std::int64_t token,
              const std::string& pool) {
  TRY(connection.query(
      "INSERT INTO agent_certificates"
      " (fingerprint, agent_id, key_digest, pool, join_token_id, expires)"
      " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (fingerprint) DO NOTHING",
      certificate.fingerprint, certificate.agent, certificate.key_digest, pool, token, certificate.expires));
  return {};
}

/// Id of the join token of the master's machine, which is no row.
constexpr std::int64_t kLocalToken = 0;

tl::unexpected<Error> useless() {
  return fail(Code::kUnauthenticated,
              "the join token is unknown, used up or expired; get one with `det join-token create`");
}

/// An agent id belongs to one key at a time; a second machine must not take it over. Keys that joined with
/// the token `except` are not counted.
Status check_id_is_free(Connection& connection, const AgentCertificate& certificate, std::int64_t except) {
  TRY_ASSIGN(const Rows others,
             connection.query("SELECT FROM agent_certificates WHERE agent_id = $1 AND key_digest <> $2"
                              " AND NOT revoked AND expires > now() AND join_token_id <> $3 LIMIT 1",
                              certificate.agent, certificate.key_digest, except));
  if (others.empty()) return {};
  return fail(Code::kAlreadyExists, "another machine joined as " + certificate.agent.value +
                                        "; choose another id, or run `det agent revoke` for it first");
}

Status admit(Connection& connection, const std::string& token_hash, const AgentCertificate& certificate) {
  // The row lock serializes joins with the same token, so uses_left cannot become negative.
  TRY_ASSIGN(const Rows tokens, connection.query("SELECT id, pool, agent_id, uses_left FROM join_tokens"
                                                 " WHERE token_hash = $1 AND expires > now() FOR UPDATE",
                                                 token_hash));
  if (tokens.empty()) return useless();
  JoinToken token;
  tokens[0].into(token.id, token.pool, token.agent, token.uses_left);
  if (!token.agent.empty() && token.agent != certificate.agent.value)
    return fail(Code::kPermissionDenied, "the join token is for agent " + token.agent);
  TRY(check_id_is_free(connection, certificate, -1));
  // A retry after a lost reply must not consume a second use.
  TRY_ASSIGN(const Rows repeats,
             connection.query("SELECT FROM agent_certificates WHERE agent_id = $1"
                              " AND key_digest = $2 AND join_token_id = $3 AND NOT revoked LIMIT 1",
                              certificate.agent, certificate.key_digest, token.id));
  if (repeats.empty()) {
    if (token.uses_left <= 0) return useless();
    TRY(connection.query("UPDATE join_tokens SET uses_left = uses_left - 1 WHERE id = $1", token.id));
  }
  return insert(connection, certificate, token.id, token.pool);
}

}  // namespace

Result<JoinToken> create_join_token(Pool& pool, JoinToken token, const std::string& token_hash,
                                    Duration lifetime) {
  TRY_ASSIGN(const Rows rows, pool.query("INSERT INTO join_tokens"
                                         " (token_hash, pool, agent_id, uses_left, created_by, expires)"
                                         " VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))"
                                         " RETURNING id, created, expires",
                                         token_hash, token.pool, token.agent, token.uses_left,
                                         token.created_by, seconds(lifetime)));
  rows[0].into(token.id, token.created, token.expires);
  return token;
}

Result<std::vector<JoinToken>> list_join_tokens(Pool& pool) {
  using J = JoinToken;
  static const Columns<J> kColumns(column<&J::id>("id"), column<&J::pool>("pool"),
                                   column<&J::agent>("agent_id"), column<&J::uses_left>("uses_left"),
                                   column<&J::created>("created"), column<&J::expires>("expires"),
                                   column<&J::created_by>("created_by"));
  static const std::string sql =
      kColumns.select(" FROM join_tokens WHERE uses_left > 0 AND expires > now() ORDER BY id");
  return kColumns.read(pool.query(sql));
}

Status delete_join_token(Pool& pool, std::int64_t id) {
  // Keep the row: an agent that has joined with the token may still retry its request.
  return found(pool.query("UPDATE join_tokens SET uses_left = 0 WHERE id = $1", id),
               "join token " + std::to_string(id));
}

Status check_join_token(Pool& pool, const std::string& token_hash) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT FROM join_tokens WHERE token_hash = $1 AND expires > now()", token_hash));
  if (rows.empty()) return useless();
  return {};
}

Status delete_expired_joins(Pool& pool) {
  TRY(pool.query("DELETE FROM join_tokens WHERE expires < now() - interval '30 days'"));
  TRY(pool.query("DELETE FROM agent_certificates WHERE expires < now() - interval '30 days'"));
  return {};
}

Status admit_agent(Pool& pool, const std::string& token_hash, const AgentCertificate& certificate) {
  return pool.in_transaction(
      [&](Connection& connection) -> Status { return admit(connection, token_hash, certificate); });
}

Status admit_local_agent(Pool& pool, const AgentCertificate& certificate) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    TRY(check_id_is_free(connection, certificate, kLocalToken));
    return insert(connection, certificate, kLocalToken, "");
  });
}

Status renew_agent(Pool& pool, const AgentCertificate& certificate) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    // The newest valid certificate for the key proves the agent's membership.
    TRY_ASSIGN(const Rows rows,
               connection.query("SELECT pool, join_token_id FROM agent_certificates"
                                " WHERE agent_id = $1 AND key_digest = $2 AND NOT revoked"
                                " AND expires > now() ORDER BY expires DESC LIMIT 1 FOR UPDATE",
                                certificate.agent, certificate.key_digest));
    if (rows.empty()) {
      return fail(Code::kPermissionDenied, "agent " + certificate.agent.value +
                                               " has no certificate for this key that could be renewed");
    }
    std::string bound;
    std::int64_t token = 0;
    rows[0].into(bound, token);
    return insert(connection, certificate, token, bound);
  });
}

Result<AgentCertificate> find_agent_certificate(Pool& pool, const std::string& fingerprint) {
  // Validity is a property of agent and key: the previous certificate stays accepted after a renewal.
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT c.agent_id, c.key_digest, c.pool, c.expires,"
                        " EXISTS (SELECT FROM agent_certificates n WHERE n.agent_id = c.agent_id"
                        " AND n.key_digest = c.key_digest AND NOT n.revoked AND n.expires > now()), c.revoked"
                        " FROM agent_certificates c WHERE c.fingerprint = $1",
                        fingerprint));
  if (rows.empty()) return fail(Code::kNotFound, "no agent joined with this certificate");
  AgentCertificate found{.fingerprint = fingerprint};
  bool good = false, revoked = false;
  rows[0].into(found.agent, found.key_digest, found.pool, found.expires, good, revoked);
  if (!good || revoked) {
    return fail(Code::kPermissionDenied, "the identity of agent " + found.agent.value +
                                             (revoked ? " was revoked" : " has expired") +
                                             "; join again with a new token");
  }
  return found;
}

Status revoke_agent(Pool& pool, const AgentId& agent) {
  TRY(pool.query("UPDATE agent_certificates SET revoked = true WHERE agent_id = $1", agent));
  return {};
}

}  // namespace det::db
