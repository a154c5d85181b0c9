// UserService: user accounts and their settings.
#pragma once

#include "det/v1/user.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Calls that hash passwords run on the password thread.
/// Checks the name of a user or group of tasks: 1 to 32 letters, digits, and _ . - $, no digit first, because
/// it becomes a line of /etc/passwd. Errors: kInvalidArgument.
Status check_account_name(const std::string& name);

class UserService final : public Service {
 public:
  explicit UserService(const Context& context);
  /// Lists users, paged.
  Status GetUsers(const Caller& caller, const v1::GetUsersRequest& request, v1::GetUsersResponse* response);
  /// Returns a user by id. Errors: kNotFound.
  Status GetUser(const Caller& caller, const v1::GetUserRequest& request, v1::GetUserResponse* response);
  /// Returns a user by name. Errors: kNotFound.
  Status GetUserByUsername(const Caller& caller, const v1::GetUserByUsernameRequest& request,
                           v1::GetUserResponse* response);
  /// Creates a user. For cluster admins. Errors: kAlreadyExists; kInvalidArgument for an invalid name or a
  /// weak password; kUnimplemented for single sign-on.
  Status PostUser(const Caller& caller, const v1::PostUserRequest& request, v1::PostUserResponse* response);
  /// Changes the given fields. Users may change their own display name and password, admins all fields. A new
  /// password and a deactivation end the user's other sessions and access tokens. Errors: kNotFound;
  /// kAlreadyExists; kPermissionDenied; kInvalidArgument; kFailedPrecondition when no active admin would be
  /// left.
  Status PatchUser(const Caller& caller, const v1::PatchUserRequest& request,
                   v1::PatchUserResponse* response);
  // Settings that clients store for the caller, by path and key (user_settings.cc).
  Status GetUserSetting(const Caller& caller, const v1::GetUserSettingRequest& request,
                        v1::GetUserSettingResponse* response);
  /// Stores settings. At most 1,000 a call, values of at most 1 MiB. Idempotent.
  Status PostUserSetting(const Caller& caller, const v1::PostUserSettingRequest& request,
                         v1::PostUserSettingResponse* response);
  /// Records that the caller looks at a project. Errors: kNotFound; kInvalidArgument for other objects.
  Status PostUserActivity(const Caller& caller, const v1::PostUserActivityRequest& request,
                          v1::PostUserActivityResponse* response);
  /// Deletes all settings of the caller.
  Status ResetUserSetting(const Caller& caller, const v1::ResetUserSettingRequest& request,
                          v1::ResetUserSettingResponse* response);
  /// Activates or deactivates users. Each id has its own result. For cluster admins.
  Status PatchUsers(const Caller& caller, const v1::PatchUsersRequest& request,
                    v1::PatchUsersResponse* response);
  /// Changes a password, as PatchUser.
  Status SetUserPassword(const Caller& caller, const v1::SetUserPasswordRequest& request,
                         v1::SetUserPasswordResponse* response);

 private:
  Status patch(const v1::PatchUserRequest& request, const Caller& caller, v1::User* response) const;
};

}  // namespace det::api
