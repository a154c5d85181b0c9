// Owns the rows of the cluster itself, of users and of their sessions. Hashing of passwords and tokens is the
// API's.
#pragma once

#include "base/secret.h"
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
/// kAlreadyExists. Names are compared without case.
Result<UserId> create_user(Pool& pool, const std::string& name, const std::string& password_hash, bool admin);
/// kNotFound.
Result<User> find_user(Pool& pool, const std::string& name);
Result<User> get_user(Pool& pool, UserId id);
/// kNotFound.
Result<std::string> password_hash(Pool& pool, UserId id);
Status set_password_hash(Pool& pool, UserId id, const std::string& hash);

struct Session {
  std::int64_t id = 0;
  User user;
  WallTime expires;
};
/// `token_hash` is unique (SHA-256 of the token, any text form). Notes the user's last_auth.
Result<std::int64_t> create_session(Pool& pool, UserId user, const std::string& token_hash,
                                    Duration lifetime);
/// kNotFound when there is none, it has expired, or its user is not active.
Result<Session> find_session(Pool& pool, const std::string& token_hash);
/// Moves the end of a live session to `lifetime` from now.
Status touch_session(Pool& pool, std::int64_t id, Duration lifetime);
/// No failure when it is gone already.
Status delete_session(Pool& pool, const std::string& token_hash);
/// How many were removed.
Result<std::int64_t> delete_expired_sessions(Pool& pool);

}  // namespace det::db
