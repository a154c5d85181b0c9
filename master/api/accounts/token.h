// TokenService: access tokens for scripts and API clients.
#pragma once

#include "det/v1/token.pb.h"
#include "master/api/service.h"

namespace det::api {

/// A token acts for its user, optionally limited to a lesser role. Only hashes of tokens are stored.
class TokenService final : public Service {
 public:
  explicit TokenService(const Context& context);
  /// Creates a token; it is only returned here. Lifespan: 30 days by default, at most ten years ("-1").
  /// Admins may create tokens for other users. Errors: kInvalidArgument; kFailedPrecondition for an inactive
  /// user.
  Status PostAccessToken(const Caller& caller, const v1::PostAccessTokenRequest& request,
                         v1::PostAccessTokenResponse* response);
  /// Lists own tokens; cluster admins list all. Errors: kNotFound for an unknown user name; kPermissionDenied
  /// for the tokens of another user.
  Status GetAccessTokens(const Caller& caller, const v1::GetAccessTokensRequest& request,
                         v1::GetAccessTokensResponse* response);
  /// Changes the description or revokes a token. Revocation is final and ends open streams within about a
  /// second. Errors: kNotFound.
  Status PatchAccessToken(const Caller& caller, const v1::PatchAccessTokenRequest& request,
                          v1::PatchAccessTokenResponse* response);
};

}  // namespace det::api
