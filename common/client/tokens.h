// File of stored logins: one token per master and user, readable by its owner only.
#pragma once

#include <optional>
#include <string>

#include "common/base/result.h"

namespace det::cli {

/// A user's name and access token.
struct Login {
  std::string user, token;
};

/// Each change is a read-modify-write under a file lock that replaces the file atomically. A file that cannot
/// be read as logins counts as empty, with a warning on stderr. The first change moves such a file to
/// `<path>.unreadable`.
class TokenFile {
 public:
  explicit TokenFile(std::string path) : path_(std::move(path)) {}
  /// ${XDG_CONFIG_HOME:-~/.config}/det/auth.json; "" when the environment has neither XDG_CONFIG_HOME nor
  /// HOME.
  static std::string default_path();

  /// Returns the login of `user` at the master with this URL; "" means the last login there.
  Result<std::optional<Login>> find(const std::string& master, const std::string& user) const;
  /// Stores the login and marks it as the last one. Errors: kFailedPrecondition (no home directory); those of
  /// the file system.
  Status save(const std::string& master, const Login& login);
  /// Removes the login of `user`, or with "" all logins at this master. Idempotent.
  Status forget(const std::string& master, const std::string& user);

 private:
  const std::string path_;
};

}  // namespace det::cli
