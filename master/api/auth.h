// Owns AuthService: login, logout, the current user.
#pragma once

#include "det/v1/auth.pb.h"
#include "master/api/passwords.h"
#include "master/api/service.h"

namespace det::api {

class AuthService final : public Service {
 public:
  explicit AuthService(const Context& context);
  Status Login(const Caller& caller, const v1::LoginRequest& request, v1::LoginResponse* response);
  Status Logout(const Caller& caller, const v1::LogoutRequest& request, v1::LogoutResponse* response);
  Status CurrentUser(const Caller& caller, const v1::CurrentUserRequest& request,
                     v1::CurrentUserResponse* response);
  Status VisibleExperiments(const Caller& caller, const v1::VisibleExperimentsRequest& request,
                            v1::VisibleExperimentsResponse* response);

 private:
  Throttle throttle_;  ///< the password worker's own
};

}  // namespace det::api
