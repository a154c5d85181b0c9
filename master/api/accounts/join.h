// JoinService: join tokens and client certificates for agents on other machines.
#pragma once

#include "common/crypto/certificates.h"
#include "det/v1/join.pb.h"
#include "master/api/auth/agent_auth.h"
#include "master/api/service.h"

namespace det::api {

/// Certificate authority for agents. Its key never leaves the process.
struct Authority {
  Identity identity;
  /// SHA-256 (hex) of the last certificate of the master's chain. Agents pin the master by it.
  std::string pin;
  /// Validity of an agent certificate. Agents renew when a third of it is left.
  Duration lifetime = std::chrono::hours(24 * 30);
};

/// An agent presents a join token once and gets a certificate, which it renews with the same key.
class JoinService final : public Service {
 public:
  /// `authority` is null without TLS; joining then fails with kFailedPrecondition.
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
  /// Exchanges a join token for a certificate. Idempotent for the same agent and key. Errors:
  /// kUnauthenticated for an unknown, used or expired token; kPermissionDenied for a token of another agent;
  /// kAlreadyExists when another machine has joined under this id.
  Status Join(const Caller& caller, const v1::JoinRequest& request, v1::JoinResponse* response);
  /// Issues a new certificate for the same key to an agent with a valid one. Errors: kPermissionDenied;
  /// kFailedPrecondition for an agent without a certificate.
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* call, const v1::RenewRequest* request,
                                  v1::JoinResponse* response);

 private:
  /// Errors: kFailedPrecondition without TLS.
  Result<const Authority*> authority() const;
  Status renew(const v1::RenewRequest& request, const Peer& peer, v1::JoinResponse* response) const;
  const std::shared_ptr<const Authority> authority_;
};

}  // namespace det::api
