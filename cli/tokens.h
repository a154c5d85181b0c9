// Owns the file in which logins are kept: one token for each master and user, readable by its owner alone.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace det::cli {

struct Login {
  std::string user, token;
};

/// Every change is read, made and written under a lock, and the file is whole at every moment. A file that is
/// not readable as logins counts as empty, with a warning on stderr; the first change moves it to
/// `<path>.unreadable`.
class TokenFile {
 public:
  explicit TokenFile(std::string path) : path_(std::move(path)) {}
  /// ${XDG_CONFIG_HOME:-~/.config}/det/auth.json; "" when the environment names no home.
  static std::string default_path();

  /// The login of `user`, or with "" the last one, at the master with this URL.
  Result<std::optional<Login>> find(const std::string& master, const std::string& user) const;
  /// Keeps the login and makes it the last one.
  Status save(const std::string& master, const Login& login);
  /// Forgets one user, or with "" all of them. No failure when there is none.
  Status forget(const std::string& master, const std::string& user);

 private:
  const std::string path_;
};

}  // namespace det::cli
