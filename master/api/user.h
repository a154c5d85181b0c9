// Owns UserService: the accounts of people.
#pragma once

#include "det/v1/user.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class UserService final : public v1::UserService::CallbackService {
 public:
  explicit UserService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetUsers(grpc::CallbackServerContext* call, const v1::GetUsersRequest* request,
                                     v1::GetUsersResponse* response) override;
  grpc::ServerUnaryReactor* GetUser(grpc::CallbackServerContext* call, const v1::GetUserRequest* request,
                                    v1::GetUserResponse* response) override;
  grpc::ServerUnaryReactor* GetUserByUsername(grpc::CallbackServerContext* call,
                                              const v1::GetUserByUsernameRequest* request,
                                              v1::GetUserResponse* response) override;
  grpc::ServerUnaryReactor* PostUser(grpc::CallbackServerContext* call, const v1::PostUserRequest* request,
                                     v1::PostUserResponse* response) override;
  grpc::ServerUnaryReactor* PatchUser(grpc::CallbackServerContext* call, const v1::PatchUserRequest* request,
                                      v1::PatchUserResponse* response) override;
  // user_settings.cc
  grpc::ServerUnaryReactor* GetUserSetting(grpc::CallbackServerContext* call, const v1::GetUserSettingRequest* request,
                                           v1::GetUserSettingResponse* response) override;
  grpc::ServerUnaryReactor* PostUserSetting(grpc::CallbackServerContext* call,
                                            const v1::PostUserSettingRequest* request,
                                            v1::PostUserSettingResponse* response) override;
  grpc::ServerUnaryReactor* ResetUserSetting(grpc::CallbackServerContext* call,
                                             const v1::ResetUserSettingRequest* request,
                                             v1::ResetUserSettingResponse* response) override;
  grpc::ServerUnaryReactor* PatchUsers(grpc::CallbackServerContext* call, const v1::PatchUsersRequest* request,
                                       v1::PatchUsersResponse* response) override;
  grpc::ServerUnaryReactor* SetUserPassword(grpc::CallbackServerContext* call,
                                            const v1::SetUserPasswordRequest* request,
                                            v1::SetUserPasswordResponse* response) override;

 private:
  Status post(const v1::PostUserRequest& request, v1::PostUserResponse* response) const;
  Status patch(const v1::PatchUserRequest& request, const Caller& caller, v1::User* response) const;
  const Context& context_;
};

}  // namespace det::api
