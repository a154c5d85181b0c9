// Owns the rows of the cluster itself, of users and of their sessions. Hashing of passwords and tokens is the
// API's.
#pragma once

#include "base/secret.h"
#include "master/db/grants.h"
#include "master/db/queries.h"

namespace det::db {

struct Cluster {
  std::string id;      ///< uuid, of the database
  std::string secret;  ///< 32 random bytes; signs allocation tokens
};
/// Made on the first call ever.
Result<Cluster> load_cluster(Pool& pool);

struct User {
  UserId id;
  std::string name;
  std::string display_name;
  bool admin = false;
  bool active = true;
  WallTime created;
  std::optional<WallTime> last_auth;
};

/// Makes the first user when there is none at all; false when there is one already (nothing changes). Repeats
/// safely.
Result<bool> create_first_admin(Pool& pool, const std::string& name, const std::string& password_hash);
/// kAlreadyExists. Names are compared without case. The user may edit in the default workspace.
Result<UserId> create_user(Pool& pool, const std::string& name, const std::string& password_hash, bool admin);
/// kNotFound.
Result<User> find_user(Pool& pool, const std::string& name);
Result<User> get_user(Pool& pool, UserId id);
/// kNotFound.
Result<std::string> password_hash(Pool& pool, UserId id);

struct UserFilter {
  std::string name;  ///< contained in the name, in any case
  std::optional<bool> admin, active;
  bool by_name = false;  ///< in order of the name; else of the id
  Window window;
};
Result<Page<User>> list_users(Pool& pool, const UserFilter& filter);

/// Absent: as it is.
struct UserChange {
  std::optional<std::string> name, display_name, password_hash;
  std::optional<bool> admin, active;
};
/// A new password, or being put out, ends the user's sessions and access tokens but for the session `keep` (a
/// token's hash). kNotFound; kAlreadyExists: the name is taken; kFailedPrecondition: the last active admin.
/// Repeats safely.
Status change_user(Pool& pool, UserId id, const UserChange& change, const std::string& keep);

/// What a client keeps for a user.
struct UserSetting {
  std::string path, key, value;
};
/// In order of path and key.
Result<std::vector<UserSetting>> list_user_settings(Pool& pool, UserId id);
/// Puts them, each over the one of its path and key; one without a value is removed. Repeats safely.
Status put_user_settings(Pool& pool, UserId id, const std::vector<UserSetting>& settings);
Status clear_user_settings(Pool& pool, UserId id);

struct Session {
  std::int64_t id = 0;
  User user;
  WallTime expires;
  Grants grants;         ///< the user's, cut to what the token may
  bool limited = false;  ///< an access token that reaches less far than its user
};
/// A login. `token_hash` is unique (SHA-256 of the token, any text form). Notes the user's last_auth.
Result<std::int64_t> create_session(Pool& pool, UserId user, const std::string& token_hash,
                                    Duration lifetime);
/// kNotFound when there is none, it has expired or is revoked, it is a login that nobody used for `idle`, or
/// its user is not active. Notes the use, to the minute.
Result<Session> find_session(Pool& pool, const std::string& token_hash,
                             Duration idle = std::chrono::hours(12));
/// No failure when it is gone already.
Status delete_session(Pool& pool, const std::string& token_hash);
/// Logins and access tokens that ended more than 30 days ago; how many were removed.
Result<std::int64_t> delete_expired_sessions(Pool& pool);

/// Of an access token.
struct TokenRow {
  std::int64_t id = 0;
  UserId user;
  std::string username, description;
  Role most = Role::kNone;  ///< it reaches no further than this; kNone: as far as its user
  WallTime created, expires;
  std::optional<WallTime> last_used;
  bool revoked = false;
};
Result<std::int64_t> create_token(Pool& pool, const TokenRow& row, const std::string& token_hash,
                                  Duration lifetime);
struct TokenFilter {
  std::optional<UserId> user;
  std::vector<std::int64_t> ids;  ///< any of these; empty: all
  bool ended = false;             ///< also those that have expired or are revoked
  Window window;
};
/// In order of id.
Result<Page<TokenRow>> list_tokens(Pool& pool, const TokenFilter& filter);
/// Absent: as it is; a token that is revoked stays so. kNotFound. Repeats safely.
Status change_token(Pool& pool, std::int64_t id, const std::optional<std::string>& description, bool revoke);

}  // namespace det::db
