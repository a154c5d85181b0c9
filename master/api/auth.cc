// Owns the steps of a login.
#include "master/api/auth.h"

#include "base/log.h"
#include "base/secret.h"
#include "base/text.h"
#include "master/api/convert.h"

namespace det::api {
namespace {

/// One answer whatever was wrong: a stranger learns nothing about which names exist.
auto refused() { return fail(Code::kUnauthenticated, "wrong user name or password"); }

}  // namespace

Status AuthService::login(const v1::LoginRequest& request, const Caller& caller,
                          v1::LoginResponse* response) {
  const std::string name = to_lower(trim(request.username()));
  const std::string& address = caller.credentials.address;
  if (name.empty() || name.size() > 128 || has_control_characters(name)) return refused();
  TRY(throttle_.allow(name, address, mono_now()));
  auto form = password_form(request.password(), request.is_hashed());
  auto user = db::find_user(context_.pool, name);
  if (!user && user.error().code != Code::kNotFound) return tl::unexpected(user.error());
  std::string hash = decoy_hash();
  if (user) {
    TRY_ASSIGN(hash, db::password_hash(context_.pool, user->id));
  }
  // The same work for every refusal.
  const bool right = verify_password(hash, form ? *form : decoy_hash());
  if (!right || !form || !user || !user->active) {
    throttle_.failed(name, address, mono_now());
    log::warn("login refused", {{"user", name}, {"address", address}});
    return refused();
  }
  throttle_.succeeded(name, address);
  const std::string token = "det_u_" + random_token();
  TRY(db::create_session(context_.pool, user->id, token_hash(token), context_.settings.session_lifetime));
  log::info("login", {{"user", user->name}, {"address", address}});
  response->set_token(token);
  to_proto(*user, response->mutable_user());
  return {};
}

grpc::ServerUnaryReactor* AuthService::Login(grpc::CallbackServerContext* call,
                                             const v1::LoginRequest* request, v1::LoginResponse* response) {
  return unary(
      context_, call, "/det.v1.AuthService/Login",
      [this, request, response](const Caller& caller) { return login(*request, caller, response); },
      &context_.passwords);
}

grpc::ServerUnaryReactor* AuthService::Logout(grpc::CallbackServerContext* call, const v1::LogoutRequest*,
                                              v1::LogoutResponse*) {
  return unary(context_, call, "/det.v1.AuthService/Logout",
               [this](const Caller& caller) { return db::delete_session(context_.pool, caller.token_hash); });
}

grpc::ServerUnaryReactor* AuthService::CurrentUser(grpc::CallbackServerContext* call,
                                                   const v1::CurrentUserRequest*,
                                                   v1::CurrentUserResponse* response) {
  return unary(context_, call, "/det.v1.AuthService/CurrentUser", [response](const Caller& caller) -> Status {
    to_proto(caller.user, response->mutable_user());
    return {};
  });
}

}  // namespace det::api
