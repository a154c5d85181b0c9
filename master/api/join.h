// Owns JoinService: tokens for agents of other machines, and their certificates.
#pragma once

#include "base/certificates.h"
#include "det/v1/join.pb.h"
#include "master/api/agent_auth.h"
#include "master/api/service.h"

namespace det::api {

/// What signs agents' certificates. The key never leaves the process.
struct Authority {
  Identity identity;
  std::string pin;  ///< SHA-256 (hexadecimal) of what agents believe the master by: the last certificate that
                    ///< it shows
  Duration lifetime = std::chrono::hours(24 * 30);  ///< of a certificate; agents renew when a third is left
};

class JoinService final : public Service {
 public:
  /// `authority` null: there is no TLS, and nobody can join.
  JoinService(const Context& context, std::shared_ptr<const Authority> authority);
  Status PostJoinToken(const Caller& caller, const v1::PostJoinTokenRequest& request,
                       v1::PostJoinTokenResponse* response);
  Status GetJoinTokens(const Caller& caller, const v1::GetJoinTokensRequest& request,
                       v1::GetJoinTokensResponse* response);
  Status DeleteJoinToken(const Caller& caller, const v1::DeleteJoinTokenRequest& request,
                         v1::DeleteJoinTokenResponse* response);
  Status RevokeAgent(const Caller& caller, const v1::RevokeAgentRequest& request,
                     v1::RevokeAgentResponse* response);
  Status Join(const Caller& caller, const v1::JoinRequest& request, v1::JoinResponse* response);
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* call, const v1::RenewRequest* request,
                                  v1::JoinResponse* response);

 private:
  Result<const Authority*> authority() const;
  Status renew(const v1::RenewRequest& request, const Peer& peer, v1::JoinResponse* response) const;
  const std::shared_ptr<const Authority> authority_;
};

}  // namespace det::api
