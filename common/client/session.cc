#include "common/client/session.h"

#include "common/base/process.h"
#include "common/client/config_file.h"
#include "common/client/trust.h"
#include "det/v1/auth.methods.h"

namespace det::cli {
Result<Client*> Session::anonymous() {
  if (!client_) {
    const std::string directory = config_directory();
    TRY_ASSIGN(const ConfigFile config, read_config_file(directory.empty() ? "" : directory + "/det.yaml"));
    TRY_ASSIGN(const Address address, find_master(master_flag, config.master));
    // Before the first RPC, which may carry a password.
    TRY(establish_trust(address, confirm));
    configured_user_ = config.user;
    client_ = std::make_unique<Client>(address);
  }
  return client_.get();
}

Result<Login> Session::log_in(const std::string& user, const std::string& password) {
  TRY_ASSIGN(Client * client, anonymous());
  v1::LoginRequest request;
  request.set_username(user);
  request.set_password(password);
  // The login that it replaces, if any, keeps the master from counting guesses of others against this device.
  if (const auto known = tokens().find(client->address().url(), user); known && *known)
    client->set_token((*known)->token);
  TRY_ASSIGN(const v1::LoginResponse response, client->call(v1::AuthService::Login, request));
  return Login{response.user().username(), response.token()};
}

Result<Login> Session::find_login() {
  const std::string token = environment_variable("DET_USER_TOKEN");
  // The user's name is not known; user_name() fetches it when needed. An explicit -u has precedence over the
  // environment.
  if (!token.empty() && user_flag.empty()) return Login{"", token};
  const std::string user = environment_variable("DET_USER"), password = environment_variable("DET_PASS");
  if (!user.empty() && !password.empty() && (user_flag.empty() || user_flag == user))
    return log_in(user, password);
  TRY_ASSIGN(Client * client, anonymous());
  const std::string wanted = user_flag.empty() ? configured_user_ : user_flag;
  TRY_ASSIGN(const auto login, tokens().find(client->address().url(), wanted));
  if (login) return *login;
  return fail(Code::kUnauthenticated, "not logged in at " + client->address().url() +
                                          ": run `det user login" + (wanted.empty() ? "" : " " + wanted) +
                                          "`");
}

Result<Client*> Session::client() {
  TRY_ASSIGN(Client * client, anonymous());
  if (!logged_in_) {
    TRY_ASSIGN(const Login login, find_login());
    client->set_token(login.token);
    user_name_ = login.user;
    logged_in_ = true;
  }
  return client;
}

Result<std::string> Session::user_name() {
  TRY_ASSIGN(Client * client, this->client());
  if (user_name_.empty()) {
    TRY_ASSIGN(const v1::CurrentUserResponse response,
               client->call(v1::AuthService::CurrentUser, v1::CurrentUserRequest()));
    user_name_ = response.user().username();
  }
  return user_name_;
}

}  // namespace det::cli
