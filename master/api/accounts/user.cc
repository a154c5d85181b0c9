#include "master/api/accounts/user.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "det/v1/user.methods.h"
#include "master/api/auth/passwords.h"
#include "master/api/convert/convert.h"

namespace det::api {
namespace {

tl::unexpected<Error> refuse(const char* field, std::string reason) {
  return fail({{.code = "E-USER", .path = field, .message = std::move(reason)}});
}

/// Returns the problems of all checks as one error.
Status all_of(std::initializer_list<Status> checks) {
  std::vector<Problem> problems;
  for (const Status& check : checks) {
    if (check) continue;
    if (check.error().problems.empty()) return check;
    problems.insert(problems.end(), check.error().problems.begin(), check.error().problems.end());
  }
  if (problems.empty()) return {};
  return fail(std::move(problems));
}

/// Refuses characters with a meaning in URLs and HTML.
Status check_user_name(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= 64 && !has_control_characters(name) &&
                     !find_bad_utf8(name) && name.find_first_of(" /\\\"'<>&") == std::string::npos;
  if (plain) return {};
  return refuse("username", "must have 1 to 64 bytes, and no spaces, slashes, quotes, < > or &");
}

Status check_display_name(const std::string& name) {
  if (name.size() <= 256 && !has_control_characters(name) && !find_bad_utf8(name)) return {};
  return refuse("displayName", "must have at most 256 bytes and no control characters");
}

Status refuse_remote() {
  return fail(Code::kUnimplemented, "there is no single sign-on: users have passwords here");
}

/// Reads the account of tasks. Without fields it has empty names. Errors: kInvalidArgument when a part is
/// missing.
Result<db::AgentUserGroup> agent_account(const v1::AgentUserGroup& wanted) {
  db::AgentUserGroup out{wanted.agent_uid(), wanted.agent_gid(), wanted.agent_user(), wanted.agent_group()};
  const bool none =
      !wanted.has_agent_uid() && !wanted.has_agent_gid() && out.user.empty() && out.group.empty();
  if (none) return out;
  const bool all =
      wanted.has_agent_uid() && wanted.has_agent_gid() && !out.user.empty() && !out.group.empty();
  if (!all)
    return fail(
        Code::kInvalidArgument,
        "agentUserGroup: agentUid, agentGid, agentUser and agentGroup belong together; name all four");
  if (out.uid < 0 || out.gid < 0)
    return fail(Code::kInvalidArgument, "agentUserGroup: agentUid and agentGid must not be negative");
  TRY(check_account_name(out.user));
  TRY(check_account_name(out.group));
  return out;
}

}  // namespace

Status check_account_name(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '$';
  };
  const bool digit = !name.empty() && name[0] >= '0' && name[0] <= '9';
  if (!name.empty() && name.size() <= 32 && !digit && std::all_of(name.begin(), name.end(), plain)) return {};
  return fail(Code::kInvalidArgument,
              "agentUserGroup: names have 1 to 32 letters, digits and _ . - $, and begin with no digit");
}

UserService::UserService(const Context& context) : Service(context, v1::UserService::full_name) {
  unary(v1::UserService::GetUsers, &UserService::GetUsers);
  unary(v1::UserService::GetUser, &UserService::GetUser);
  unary(v1::UserService::GetUserByUsername, &UserService::GetUserByUsername);
  unary(v1::UserService::PostUser, &UserService::PostUser, context_.passwords);
  unary(v1::UserService::PatchUser, &UserService::PatchUser, context_.passwords);
  unary(v1::UserService::GetUserSetting, &UserService::GetUserSetting);
  unary(v1::UserService::PostUserSetting, &UserService::PostUserSetting);
  unary(v1::UserService::PostUserActivity, &UserService::PostUserActivity);
  unary(v1::UserService::ResetUserSetting, &UserService::ResetUserSetting);
  unary(v1::UserService::PatchUsers, &UserService::PatchUsers);
  unary(v1::UserService::SetUserPassword, &UserService::SetUserPassword, context_.passwords);
}

Status UserService::GetUsers(const Caller&, const v1::GetUsersRequest& request,
                             v1::GetUsersResponse* response) {
  using Request = v1::GetUsersRequest;
  db::UserFilter filter{.name = make_utf8(request.name()),
                        .by_name = request.sort_by() == Request::SORT_BY_USER_NAME ||
                                   request.sort_by() == Request::SORT_BY_NAME,
                        .window = to_window(request.offset(), request.limit(), request.order_by(), -1)};
  if (request.has_active()) filter.active = request.active().value();
  if (request.has_admin()) filter.admin = request.admin().value();
  TRY_ASSIGN(const auto page, db::list_users(context_.pool, filter));
  for (const db::User& user : page.rows) to_proto(user, response->add_users());
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

Status UserService::GetUser(const Caller&, const v1::GetUserRequest& request, v1::GetUserResponse* response) {
  TRY_ASSIGN(const db::User user, db::get_user(context_.pool, UserId(request.user_id())));
  to_proto(user, response->mutable_user());
  return {};
}

Status UserService::GetUserByUsername(const Caller&, const v1::GetUserByUsernameRequest& request,
                                      v1::GetUserResponse* response) {
  TRY_ASSIGN(const db::User user, db::find_user(context_.pool, make_utf8(request.username())));
  to_proto(user, response->mutable_user());
  return {};
}

Status UserService::PostUser(const Caller&, const v1::PostUserRequest& request,
                             v1::PostUserResponse* response) {
  const v1::User& wanted = request.user();
  TRY(all_of({check_user_name(wanted.username()), check_display_name(wanted.display_name()),
              check_password(request.password(), request.is_hashed(), wanted.username())}));
  // Refused rather than ignored: the account would have no way to log in.
  if (wanted.remote()) return refuse_remote();
  db::UserChange rest;
  if (!wanted.display_name().empty()) rest.display_name = wanted.display_name();
  if (wanted.has_agent_user_group()) {
    TRY_ASSIGN(rest.agent, agent_account(wanted.agent_user_group()));
  }
  TRY_ASSIGN(const std::string form, password_form(request.password(), request.is_hashed()));
  // Hashing is the reason why this handler runs on the password thread.
  TRY_ASSIGN(const UserId id, db::create_user(context_.pool, wanted.username(), hash_password(form),
                                              wanted.admin(), context_.settings.new_user_role));
  if (rest.display_name || rest.agent) TRY(db::change_user(context_.pool, id, rest, ""));
  TRY_ASSIGN(const db::User user, db::get_user(context_.pool, id));
  to_proto(user, response->mutable_user());
  return {};
}

Status UserService::patch(const v1::PatchUserRequest& request, const Caller& caller,
                          v1::User* response) const {
  const UserId id(request.user_id());
  const v1::PatchUser& wanted = request.user();
  // The other fields belong to the user itself; the access table has checked that.
  const bool admins =
      wanted.has_username() || wanted.has_admin() || wanted.has_active() || wanted.has_agent_user_group();
  if (admins) TRY(authorize(caller, Action::kAdminister, Target::kCluster, {}, context_.pool));
  TRY_ASSIGN(const db::User before, db::get_user(context_.pool, id));
  if (wanted.remote().value()) return refuse_remote();
  db::UserChange change;
  if (wanted.has_agent_user_group()) {
    TRY_ASSIGN(change.agent, agent_account(wanted.agent_user_group()));
  }
  if (wanted.has_username()) change.name = wanted.username().value();
  const std::string& password = wanted.password().value();
  // The password is checked against the new name if both change.
  TRY(all_of({change.name ? check_user_name(*change.name) : Status(),
              check_display_name(wanted.display_name().value()),
              wanted.has_password()
                  ? check_password(password, wanted.is_hashed(), change.name.value_or(before.name))
                  : Status()}));
  if (wanted.has_display_name()) {
    const std::string& name = wanted.display_name().value();
    // A user must not pass for another one.
    if (!name.empty() && name != before.display_name) {
      TRY_ASSIGN(const bool taken, db::is_name_of_another(context_.pool, id, name));
      if (taken) return refuse("displayName", "is that of another user: " + name);
    }
    change.display_name = name;
  }
  if (wanted.has_password()) {
    TRY_ASSIGN(const std::string form, password_form(password, wanted.is_hashed()));
    change.password_hash = hash_password(form);
  }
  if (wanted.has_admin()) change.admin = wanted.admin().value();
  if (wanted.has_active()) change.active = wanted.active().value();
  // The caller's own session survives a change of its password.
  TRY(db::change_user(context_.pool, id, change, caller.token_hash));
  TRY_ASSIGN(const db::User user, db::get_user(context_.pool, id));
  to_proto(user, response);
  return {};
}

Status UserService::PatchUser(const Caller& caller, const v1::PatchUserRequest& request,
                              v1::PatchUserResponse* response) {
  return patch(request, caller, response->mutable_user());
}

Status UserService::SetUserPassword(const Caller& caller, const v1::SetUserPasswordRequest& request,
                                    v1::SetUserPasswordResponse* response) {
  v1::PatchUserRequest change;
  change.set_user_id(request.user_id());
  change.mutable_user()->mutable_password()->set_value(request.password());
  return patch(change, caller, response->mutable_user());
}

}  // namespace det::api
