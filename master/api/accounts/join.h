// JoinService: join tokens, and the identities that agents get for them.
#pragma once

#include "common/crypto/certificates.h"
#include "det/v1/join.pb.h"
#include "master/api/auth/agent_auth.h"
#include "master/api/service.h"
#include "master/db/accounts/join.h"

namespace det::api {

/// Certificate authority for agents. Its key never leaves the process.
struct Authority {
  Identity identity;
  /// SHA-256 (hex) of the last certificate of the master's chain. Agents pin the master by it.
  std::string pin;
  /// Validity of an agent certificate. Agents renew when a third of it is left.
  Duration lifetime = std::chrono::hours(24 * 30);
};

/// An agent presents a join token once. With TLS it gets a certificate, which it renews with the same key;
/// without TLS, which is for agents on loopback only, its own secret becomes its token.
class JoinService final : public Service {
 public:
  /// `authority` is null without TLS.
  JoinService(const Context& context, std::shared_ptr<const Authority> authority);
  /// Creates a join token, bound to a pool or an agent id if given. The secret is only returned here.
  /// Lifespan: 1 h by default, at most 30 days; 1 to 1,000 uses. Errors: kInvalidArgument.
  Status PostJoinToken(const Caller& caller, const v1::PostJoinTokenRequest& request,
                       v1::PostJoinTokenResponse* response);
  /// Lists tokens that can still be used, without their secrets.
  Status GetJoinTokens(const Caller& caller, const v1::GetJoinTokensRequest& request,
                       v1::GetJoinTokensResponse* response);
  /// Deletes a join token. Errors: kNotFound.
  Status DeleteJoinToken(const Caller& caller, const v1::DeleteJoinTokenRequest& request,
                         v1::DeleteJoinTokenResponse* response);
  /// Revokes the certificates of an agent. Its link ends within a second; it needs a new token to return.
  /// Idempotent.
  Status RevokeAgent(const Caller& caller, const v1::RevokeAgentRequest& request,
                     v1::RevokeAgentResponse* response);
  /// Exchanges a join token for a certificate, or admits the caller's secret without TLS. Idempotent for the
  /// same agent and key. Errors: kUnauthenticated for an unknown, used or expired token, and for the token of
  /// the master's machine from another one; kPermissionDenied for a token of another agent, and without TLS
  /// for a remote caller; kAlreadyExists when another machine has joined under this id.
  Status Join(const Caller& caller, const v1::JoinRequest& request, v1::JoinResponse* response);
  /// Issues a new certificate for the same key to an agent with a valid one. Errors: kPermissionDenied;
  /// kFailedPrecondition for an agent without a certificate.
  void Renew(const Deferred& call, const v1::RenewRequest* request, v1::JoinResponse* response);

 private:
  /// Whether the token admits an agent at all; asked before anything is signed. Errors: kUnauthenticated.
  Result<bool> is_local(const Caller& caller, const std::string& token_hash) const;
  /// Signs a certificate for the request, or takes over its secret without TLS.
  Result<std::pair<std::string, db::AgentCertificate>> issue(const v1::JoinRequest& request,
                                                             const AgentId& agent) const;
  Status renew(const v1::RenewRequest& request, const AgentCaller& caller, v1::JoinResponse* response) const;
  const std::shared_ptr<const Authority> authority_;
};

}  // namespace det::api
