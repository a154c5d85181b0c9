// Owns the questions about the machine before a private PostgreSQL can run: which programs, as whom. Not for
// other rooms.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace det::db {

struct PostgresPrograms {
  std::string directory;  ///< holds postgres and initdb
  int major = 0;
};
/// The newest installed (>= 13), or the one of `major` when that is not 0. kNotFound with the mend.
Result<PostgresPrograms> find_postgres(int major);

/// Who PostgreSQL runs as: ourselves, or, for root, the owner of the data directory or else the user
/// postgres.
struct ServerUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;
  bool switched = false;        ///< is not ourselves
  bool needs_override = false;  ///< cannot reach the directory by its own rights

  /// The command line that runs `argv` as this user.
  std::vector<std::string> command(std::vector<std::string> argv) const;
  /// Gives the path to this user.
  Status own(const std::string& path) const;
};
Result<ServerUser> choose_server_user(const std::string& directory, const std::string& data);
/// The name of the user this process runs as.
Result<std::string> own_user_name();

}  // namespace det::db
