// Owns TokenService: access tokens.
#pragma once

#include "det/v1/token.pb.h"
#include "master/api/service.h"

namespace det::api {

class TokenService final : public Service {
 public:
  explicit TokenService(const Context& context);
  Status PostAccessToken(const Caller& caller, const v1::PostAccessTokenRequest& request,
                         v1::PostAccessTokenResponse* response);
  Status GetAccessTokens(const Caller& caller, const v1::GetAccessTokensRequest& request,
                         v1::GetAccessTokensResponse* response);
  Status PatchAccessToken(const Caller& caller, const v1::PatchAccessTokenRequest& request,
                          v1::PatchAccessTokenResponse* response);
};

}  // namespace det::api
