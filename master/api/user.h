// Owns UserService: the accounts of people.
#pragma once

#include "det/v1/user.pb.h"
#include "master/api/service.h"

namespace det::api {

class UserService final : public Service {
 public:
  explicit UserService(const Context& context);
  Status GetUsers(const Caller& caller, const v1::GetUsersRequest& request, v1::GetUsersResponse* response);
  Status GetUser(const Caller& caller, const v1::GetUserRequest& request, v1::GetUserResponse* response);
  Status GetUserByUsername(const Caller& caller, const v1::GetUserByUsernameRequest& request,
                           v1::GetUserResponse* response);
  Status PostUser(const Caller& caller, const v1::PostUserRequest& request, v1::PostUserResponse* response);
  Status PatchUser(const Caller& caller, const v1::PatchUserRequest& request,
                   v1::PatchUserResponse* response);
  // user_settings.cc
  Status GetUserSetting(const Caller& caller, const v1::GetUserSettingRequest& request,
                        v1::GetUserSettingResponse* response);
  Status PostUserSetting(const Caller& caller, const v1::PostUserSettingRequest& request,
                         v1::PostUserSettingResponse* response);
  Status ResetUserSetting(const Caller& caller, const v1::ResetUserSettingRequest& request,
                          v1::ResetUserSettingResponse* response);
  Status PatchUsers(const Caller& caller, const v1::PatchUsersRequest& request,
                    v1::PatchUsersResponse* response);
  Status SetUserPassword(const Caller& caller, const v1::SetUserPasswordRequest& request,
                         v1::SetUserPasswordResponse* response);

 private:
  Status patch(const v1::PatchUserRequest& request, const Caller& caller, v1::User* response) const;
};

}  // namespace det::api
