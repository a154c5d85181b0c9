// Handlers of AuthService.
#include "master/api/accounts/auth.h"

#include "common/base/log.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "det/v1/auth.methods.h"
#include "master/api/convert/convert.h"
#include "master/db/accounts/audit.h"

namespace det::api {
namespace {

/// One message for all refusals, so that the reply does not reveal which user names exist.
auto refused() { return fail(Code::kUnauthenticated, "wrong user name or password"); }

/// Records a login attempt. The reason of a refusal is only distinguished here. The throttle bounds the
/// number of rows that unauthenticated callers can cause.
void note(db::Pool& pool, std::optional<UserId> user, const std::string& name, const std::string& address,
          const char* outcome) {
  log::info("audit",
            {{"user", name}, {"action", "AuthService/Login"}, {"outcome", outcome}, {"address", address}});
  const Status kept = db::add_audit(pool, {.user = user,
                                           .username = name,
                                           .action = "AuthService/Login",
                                           .outcome = outcome,
                                           .address = address});
  if (!kept) log::error("audit log could not be written", {{"error", kept.error().message}});
}

}  // namespace

AuthService::AuthService(const Context& context) : Service(context, v1::AuthService::full_name) {
  unary(v1::AuthService::Login, &AuthService::Login, context_.passwords);
  unary(v1::AuthService::Logout, &AuthService::Logout);
  unary(v1::AuthService::CurrentUser, &AuthService::CurrentUser);
  unary(v1::AuthService::VisibleExperiments, &AuthService::VisibleExperiments);
}

Status AuthService::Login(const Caller& caller, const v1::LoginRequest& request,
                          v1::LoginResponse* response) {
  const std::string name = to_lower(trim(request.username()));
  const std::string& address = caller.credentials.address;
  if (name.empty() || name.size() > 128 || has_control_characters(name)) return refused();
  // A device with a valid session of this user is counted by itself: guesses from the same address must not
  // lock it out.
  const std::string& known = caller.credentials.user_token;
  const auto session = known.empty() ? Result<db::Session>(fail(Code::kNotFound, "no session"))
                                     : context_.sessions->find(token_hash(known));
  const bool own = session && to_lower(session->user.name) == name;
  const std::string from = own ? "session " + token_hash(known) : address;
  TRY(throttle_.allow(name, from, mono_now()));
  auto form = password_form(request.password(), request.is_hashed());
  auto user = db::find_user(context_.pool, name);
  if (!user && user.error().code != Code::kNotFound) return tl::unexpected(user.error());
  // An unknown user costs a hash as well; otherwise response times would reveal which names exist.
  std::string hash = decoy_hash();
  if (user) {
    TRY_ASSIGN(hash, db::password_hash(context_.pool, user->id));
  }
  // Verified in every case, so that all refusals take the same time.
  const bool right = verify_password(hash, form ? *form : decoy_hash());
  if (!right || !form || !user) {
    throttle_.failed(name, from, mono_now());
    note(context_.pool, user ? std::optional(user->id) : std::nullopt, name, address, "Unauthenticated");
    return refused();
  }
  // Revealed only to callers that know the password.
  if (!user->active) {
    throttle_.failed(name, from, mono_now());
    note(context_.pool, user->id, name, address, "PermissionDenied");
    return fail(Code::kPermissionDenied, "user is not active; an administrator can activate it");
  }
  throttle_.succeeded(name, from);
  const std::string token = "det_u_" + random_token();
  TRY(db::create_session(context_.pool, user->id, token_hash(token), context_.settings.session_lifetime));
  note(context_.pool, user->id, user->name, address, "OK");
  response->set_token(token);
  to_proto(*user, response->mutable_user());
  return {};
}

Status AuthService::Logout(const Caller& caller, const v1::LogoutRequest&, v1::LogoutResponse*) {
  return db::delete_session(context_.pool, caller.token_hash);
}

Status AuthService::CurrentUser(const Caller& caller, const v1::CurrentUserRequest&,
                                v1::CurrentUserResponse* response) {
  to_proto(caller.user, response->mutable_user());
  return {};
}

Status AuthService::VisibleExperiments(const Caller& caller, const v1::VisibleExperimentsRequest& request,
                                       v1::VisibleExperimentsResponse* response) {
  // A caller with access to all workspaces needs no filter.
  if (!caller.grants.visible()) {
    response->set_all(true);
    return {};
  }
  std::vector<std::string> ids;
  for (const std::int64_t id : request.ids()) ids.push_back(std::to_string(id));
  TRY_ASSIGN(const auto seen, may_see(caller, db::Placed::kExperiment, ids, context_.pool));
  for (int i = 0; i < request.ids_size(); ++i)
    if (seen[static_cast<std::size_t>(i)]) response->add_ids(request.ids(i));
  const std::vector<std::string> tasks(request.task_ids().begin(), request.task_ids().end());
  TRY_ASSIGN(const auto seen_tasks, may_see(caller, db::Placed::kTask, tasks, context_.pool));
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (seen_tasks[i]) response->add_task_ids(tasks[i]);
  return {};
}

}  // namespace det::api
