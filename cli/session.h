// Owns what one run of det knows: which master, who asks. Commands get it and nothing else.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/client.h"
#include "cli/tokens.h"

namespace det::cli {

class Session {
 public:
  std::string master_flag, user_flag;  ///< -m, -u

  /// A connection that says who asks. kUnauthenticated when nobody has logged in; nothing is sent for that
  /// but, with DET_USER and DET_PASS, the login.
  Result<Client*> client();
  /// A connection for what needs no login.
  Result<Client*> anonymous();
  /// The user's name at the master; asks the master when only a token is known.
  Result<std::string> user_name();
  TokenFile tokens() const { return TokenFile(TokenFile::default_path()); }

  /// Checks the password, and returns the user's name as the master spells it with a new token.
  Result<Login> log_in(const std::string& user, const std::string& password);

 private:
  Result<Login> find_login();
  std::unique_ptr<Client> client_;
  bool logged_in_ = false;
  std::string user_name_, configured_user_;
};

}  // namespace det::cli
