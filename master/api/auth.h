// Owns AuthService: login, logout, the current user.
#pragma once

#include "det/v1/auth.grpc.pb.h"
#include "master/api/passwords.h"
#include "master/api/unary.h"

namespace det::api {

class AuthService final : public v1::AuthService::CallbackService {
 public:
  explicit AuthService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* Login(grpc::CallbackServerContext* call, const v1::LoginRequest* request,
                                  v1::LoginResponse* response) override;
  grpc::ServerUnaryReactor* Logout(grpc::CallbackServerContext* call, const v1::LogoutRequest* request,
                                   v1::LogoutResponse* response) override;
  grpc::ServerUnaryReactor* CurrentUser(grpc::CallbackServerContext* call,
                                        const v1::CurrentUserRequest* request,
                                        v1::CurrentUserResponse* response) override;
  grpc::ServerUnaryReactor* VisibleExperiments(grpc::CallbackServerContext* call,
                                               const v1::VisibleExperimentsRequest* request,
                                               v1::VisibleExperimentsResponse* response) override;

 private:
  Status login(const v1::LoginRequest& request, const Caller& caller, v1::LoginResponse* response);
  const Context& context_;
  Throttle throttle_;  ///< the password worker's own
};

}  // namespace det::api
