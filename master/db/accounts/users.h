// Rows of users and their settings. Passwords arrive here already hashed.
#pragma once

#include "master/db/queries/page.h"

namespace det::db {

/// Account on the machines of agents. Names are not empty.
struct AgentUserGroup {
  int uid = 0, gid = 0;
  std::string user, group;
};

/// One row of `users`.
struct User {
  /// Assigned by the database.
  UserId id;
  /// Login name, unique regardless of case.
  std::string name;
  /// Name shown in user interfaces; "" when unset.
  std::string display_name;
  /// Cluster administrator.
  bool admin = false;
  /// An inactive user cannot log in.
  bool active = true;
  WallTime created;
  /// Time of the last login.
  std::optional<WallTime> last_auth;
  /// That its tasks are to run under. Unset: that of the agent.
  std::optional<AgentUserGroup> agent;
};

/// Creates the first user, an administrator, when there are no users. Otherwise changes nothing and returns
/// false. Idempotent.
Result<bool> create_first_admin(Pool& pool, const std::string& name, const std::string& password_hash);
/// Creates a user with the stored name of a role in the default workspace, or with no role for "NONE".
/// Returns its id. kAlreadyExists: the name is taken (names are compared without case).
Result<UserId> create_user(Pool& pool, const std::string& name, const std::string& password_hash, bool admin,
                           const std::string& role = "EDITOR");
/// Finds a user by name, regardless of case. kNotFound.
Result<User> find_user(Pool& pool, const std::string& name);
/// Finds a user by id. kNotFound.
Result<User> get_user(Pool& pool, UserId id);
/// Returns the stored password hash of a user. kNotFound.
Result<std::string> password_hash(Pool& pool, UserId id);

/// Filter of list_users(). Unset members match every user.
struct UserFilter {
  std::string name;  ///< Substring of the name, case-insensitive.
  std::optional<bool> admin, active;
  bool by_name = false;  ///< Sort by name instead of id.
  Window window;
};
/// Lists users, one page at a time.
Result<Page<User>> list_users(Pool& pool, const UserFilter& filter);

/// Changes to a user. Unset members keep their value.
struct UserChange {
  std::optional<std::string> name, display_name, password_hash;
  std::optional<bool> admin, active;
  std::optional<AgentUserGroup> agent;  ///< With empty names: back to that of the agent.
};
/// Whether another user has this name or display name, regardless of case.
Result<bool> is_name_of_another(Pool& pool, UserId id, const std::string& name);
/// Applies `change`. A new password or deactivation ends the sessions and access tokens of the user, except
/// the session with token hash `keep`. Idempotent. Errors: kNotFound; kAlreadyExists (the name is taken);
/// kFailedPrecondition (the change would leave no active administrator).
Status change_user(Pool& pool, UserId id, const UserChange& change, const std::string& keep);

/// A client-side preference stored for a user.
struct UserSetting {
  std::string path, key, value;
};
/// Lists the settings of a user by path and key.
Result<std::vector<UserSetting>> list_user_settings(Pool& pool, UserId id);
/// Limits of the settings of one user: their number, and the bytes of their paths, keys and values.
inline constexpr std::int64_t kMaxStoredSettings = 2000, kMaxStoredSettingBytes = 8 << 20;
/// Inserts or overwrites settings by (path, key), all or none. An empty value removes the setting.
/// Idempotent. Errors: kFailedPrecondition (the user would have more settings than the limits allow).
Status put_user_settings(Pool& pool, UserId id, const std::vector<UserSetting>& settings);
/// Removes all settings of a user. Idempotent.
Status clear_user_settings(Pool& pool, UserId id);

/// Columns of a user, from "users u".
const Columns<User>& user_columns();
/// Locks the active administrators and some users until the end of the transaction. A writer that may remove
/// an administrator calls it first and check_admin() last.
Status lock_admins(Connection& connection, const std::vector<std::int64_t>& users);
/// kFailedPrecondition: there is no active administrator.
Status check_admin(Connection& connection);
/// Returns kNotFound for a user.
tl::unexpected<Error> no_user(UserId id);

}  // namespace det::db
