// State of one invocation of det: master, user and connection. Commands receive nothing else.
#pragma once

#include <memory>
#include <string>

#include "common/base/result.h"
#include "common/client/client.h"
#include "common/client/tokens.h"
#include "common/client/trust.h"

namespace det::cli {

/// Connects and logs in on first use. Single-threaded.
class Session {
 public:
  std::string master_flag, user_flag;  ///< values of -m and -u; "" when absent
  Confirm confirm;                     ///< prompt for unknown certificates; null rejects them

  /// Returns the connection with a login; the session keeps ownership. Uses the first of: DET_USER_TOKEN,
  /// unless -u is set; DET_USER and DET_PASS, unless -u names another user; the stored login of -u, else of
  /// det.yaml's user, else the last one. Errors: kUnauthenticated (not logged in; no RPC was sent); those of
  /// anonymous().
  Result<Client*> client();
  /// Returns the connection for calls that need no login; the session keeps ownership. Errors:
  /// kInvalidArgument (address or det.yaml); those of establish_trust().
  Result<Client*> anonymous();
  /// Returns the user's name as the master spells it. Calls the master when only a token is available.
  Result<std::string> user_name();
  /// The file of stored logins.
  TokenFile tokens() const { return TokenFile(TokenFile::default_path()); }

  /// Exchanges a password for a token. Returns it with the user's name as the master spells it. Does not
  /// store the login.
  Result<Login> log_in(const std::string& user, const std::string& password);

 private:
  Result<Login> find_login();
  std::unique_ptr<Client> client_;
  bool logged_in_ = false;
  std::string user_name_, configured_user_;
};

}  // namespace det::cli
