// AuthService: login, logout, the current user, and the visibility of objects on event streams.
#pragma once

#include "det/v1/auth.pb.h"
#include "master/api/auth/passwords.h"
#include "master/api/service.h"

namespace det::api {

/// Creates and ends login sessions. Only hashes of session tokens are stored.
class AuthService final : public Service {
 public:
  explicit AuthService(const Context& context);
  /// Checks a name and password and opens a session. Unknown user, wrong password and inactive account are
  /// reported alike. Runs on the password thread. Errors: kUnauthenticated; kResourceExhausted when
  /// throttled.
  Status Login(const Caller& caller, const v1::LoginRequest& request, v1::LoginResponse* response);
  /// Ends the session of the token that the call was made with.
  Status Logout(const Caller& caller, const v1::LogoutRequest& request, v1::LogoutResponse* response);
  /// Returns the account of the caller.
  Status CurrentUser(const Caller& caller, const v1::CurrentUserRequest& request,
                     v1::CurrentUserResponse* response);
  /// Returns the ids of the request that the caller may see. `all` is set when the caller may see everything.
  Status VisibleExperiments(const Caller& caller, const v1::VisibleExperimentsRequest& request,
                            v1::VisibleExperimentsResponse* response);

 private:
  Throttle throttle_;  ///< used on the password thread only
};

}  // namespace det::api
