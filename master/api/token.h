// Owns TokenService: access tokens.
#pragma once

#include "det/v1/token.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class TokenService final : public v1::TokenService::CallbackService {
 public:
  explicit TokenService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* PostAccessToken(grpc::CallbackServerContext* call,
                                            const v1::PostAccessTokenRequest* request,
                                            v1::PostAccessTokenResponse* response) override;
  grpc::ServerUnaryReactor* GetAccessTokens(grpc::CallbackServerContext* call,
                                            const v1::GetAccessTokensRequest* request,
                                            v1::GetAccessTokensResponse* response) override;
  grpc::ServerUnaryReactor* PatchAccessToken(grpc::CallbackServerContext* call,
                                             const v1::PatchAccessTokenRequest* request,
                                             v1::PatchAccessTokenResponse* response) override;

 private:
  Status post(const v1::PostAccessTokenRequest& request, const Caller& caller,
              v1::PostAccessTokenResponse* response) const;
  Status list(const v1::GetAccessTokensRequest& request, const Caller& caller,
              v1::GetAccessTokensResponse* response) const;
  const Context& context_;
};

}  // namespace det::api
