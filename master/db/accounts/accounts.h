// Rows of the cluster, users, login sessions and access tokens. Passwords and tokens arrive here already
// hashed. All functions block on the database and may be called from any thread.
#pragma once

#include "common/base/secret.h"
#include "master/db/accounts/grants.h"
#include "master/db/queries/queries.h"

namespace det::db {

/// Identity of the cluster. Stored in the database, so it survives a change of the master's machine.
struct Cluster {
  std::string id;      ///< UUID of the database.
  std::string secret;  ///< 32 random bytes; signs allocation tokens.
};
/// Returns the cluster's identity and creates it on the first call. Safe to call from several masters.
Result<Cluster> load_cluster(Pool& pool);

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
};

/// Creates the first user, an administrator, when there are no users. Otherwise changes nothing and returns
/// false. Idempotent.
Result<bool> create_first_admin(Pool& pool, const std::string& name, const std::string& password_hash);
/// Creates a user with the editor role in the default workspace. Returns its id. kAlreadyExists: the name is
/// taken (names are compared without case).
Result<UserId> create_user(Pool& pool, const std::string& name, const std::string& password_hash, bool admin);
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
};
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
/// Inserts or overwrites settings by (path, key). An empty value removes the setting. Not atomic: an error
/// can leave the first settings stored. Idempotent.
Status put_user_settings(Pool& pool, UserId id, const std::vector<UserSetting>& settings);
/// Removes all settings of a user. Idempotent.
Status clear_user_settings(Pool& pool, UserId id);

/// An authenticated login or access token.
struct Session {
  std::int64_t id = 0;
  User user;
  WallTime expires;
  Grants grants;         ///< Grants of the user, capped at the role limit of the token.
  bool limited = false;  ///< True for an access token with a role limit.
};
/// Creates a login session and sets last_auth of the user. `token_hash` must be unique (SHA-256 of the token,
/// in any text form). Returns the session id; a retry with the same hash returns the same session. kNotFound:
/// no such user.
Result<std::int64_t> create_session(Pool& pool, UserId user, const std::string& token_hash,
                                    Duration lifetime);
/// Looks up the session of a token. kNotFound: no such session, expired, revoked, a login unused for longer
/// than `idle`, or an inactive user. Updates last_used at most once a minute.
Result<Session> find_session(Pool& pool, const std::string& token_hash,
                             Duration idle = std::chrono::hours(12));
/// Ends a session. A login is deleted; an access token is kept as revoked. Succeeds when there is none.
Status delete_session(Pool& pool, const std::string& token_hash);
/// Deletes logins as soon as they have expired and access tokens 30 days after expiry. Returns the number of
/// deleted rows.
Result<std::int64_t> delete_expired_sessions(Pool& pool);

/// One access token, without its secret.
struct TokenRow {
  std::int64_t id = 0;
  UserId user;
  std::string username, description;
  /// Role limit of the token; kNone: no limit beyond the roles of the user.
  Role most = Role::kNone;
  WallTime created, expires;
  /// Unset until the first use.
  std::optional<WallTime> last_used;
  bool revoked = false;
};
/// Creates an access token for `row.user` with the description and role limit of `row`. Returns its id.
/// kNotFound: no such user.
Result<std::int64_t> create_token(Pool& pool, const TokenRow& row, const std::string& token_hash,
                                  Duration lifetime);
/// Filter of list_tokens(). Unset members match every token.
struct TokenFilter {
  std::optional<UserId> user;
  std::vector<std::int64_t> ids;  ///< Any of these ids; empty matches all.
  bool ended = false;             ///< Include expired and revoked tokens.
  Window window;
};
/// Lists access tokens by id.
Result<Page<TokenRow>> list_tokens(Pool& pool, const TokenFilter& filter);
/// Changes the description of an access token or revokes it. An unset description keeps its value; revocation
/// is permanent. Idempotent. kNotFound.
Status change_token(Pool& pool, std::int64_t id, const std::optional<std::string>& description, bool revoke);

}  // namespace det::db
