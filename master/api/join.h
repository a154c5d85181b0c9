// Owns JoinService: tokens for agents of other machines, and their certificates.
#pragma once

#include "base/certificates.h"
#include "det/v1/join.grpc.pb.h"
#include "master/api/agent_auth.h"
#include "master/api/unary.h"

namespace det::api {

/// What signs agents' certificates. The key never leaves the process.
struct Authority {
  Identity identity;
  std::string pin;  ///< SHA-256 (hexadecimal) of what agents believe the master by: the last certificate that it shows
  Duration lifetime = std::chrono::hours(24 * 30);  ///< of a certificate; agents renew when a third is left
};

class JoinService final : public v1::JoinService::CallbackService {
 public:
  /// `authority` null: there is no TLS, and nobody can join.
  JoinService(const Context& context, std::shared_ptr<const Authority> authority)
      : context_(context), authority_(std::move(authority)) {}
  grpc::ServerUnaryReactor* PostJoinToken(grpc::CallbackServerContext* call, const v1::PostJoinTokenRequest* request,
                                          v1::PostJoinTokenResponse* response) override;
  grpc::ServerUnaryReactor* GetJoinTokens(grpc::CallbackServerContext* call, const v1::GetJoinTokensRequest* request,
                                          v1::GetJoinTokensResponse* response) override;
  grpc::ServerUnaryReactor* DeleteJoinToken(grpc::CallbackServerContext* call,
                                            const v1::DeleteJoinTokenRequest* request,
                                            v1::DeleteJoinTokenResponse* response) override;
  grpc::ServerUnaryReactor* RevokeAgent(grpc::CallbackServerContext* call, const v1::RevokeAgentRequest* request,
                                        v1::RevokeAgentResponse* response) override;
  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* call, const v1::JoinRequest* request,
                                 v1::JoinResponse* response) override;
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* call, const v1::RenewRequest* request,
                                  v1::JoinResponse* response) override;

 private:
  Result<const Authority*> authority() const;
  Status post(const v1::PostJoinTokenRequest& request, const Caller& caller, v1::PostJoinTokenResponse* response) const;
  Status join(const v1::JoinRequest& request, const Caller& caller, v1::JoinResponse* response) const;
  Status renew(const v1::RenewRequest& request, const Peer& peer, v1::JoinResponse* response) const;
  const Context& context_;
  const std::shared_ptr<const Authority> authority_;
};

}  // namespace det::api
