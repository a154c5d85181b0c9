// Host checks for the private PostgreSQL: installed programs, and the system user to run them as. Private to
// master/db.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/base/result.h"

namespace det::db {

/// An installed PostgreSQL.
struct PostgresPrograms {
  std::string directory;  ///< Directory of postgres and initdb.
  int major = 0;          ///< Major version.
};
/// Finds the newest installed version (at least 13), or version `major` unless it is 0. Runs `postgres
/// --version`. Errors, with advice: kNotFound (none installed), kFailedPrecondition (`major` is not
/// installed).
Result<PostgresPrograms> find_postgres(int major);

/// System user that PostgreSQL runs as: the current user, or, for root, the owner of the data directory, by
/// default "postgres".
struct ServerUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;
  bool switched = false;        ///< Differs from the current user.
  bool needs_override = false;  ///< Needs CAP_DAC_OVERRIDE to reach the directory.

  /// Returns the command line that runs `argv` as this user.
  std::vector<std::string> command(std::vector<std::string> argv) const;
  /// Changes the owner of `path` to this user.
  Status own(const std::string& path) const;
};
/// Chooses the user. kFailedPrecondition: root without another suitable user, or a uid without a name.
Result<ServerUser> choose_server_user(const std::string& directory, const std::string& data);
/// Returns the name of the current user. kFailedPrecondition: the uid has no name.
Result<std::string> own_user_name();

}  // namespace det::db
