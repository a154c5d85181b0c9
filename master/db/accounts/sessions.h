// Rows of login sessions and access tokens. Tokens arrive here already hashed.
#pragma once

#include "master/db/accounts/roles.h"
#include "master/db/accounts/users.h"

namespace det::db {

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
/// Looks up the session of a task's owner by the token of an allocation. It is limited to the role Editor and
/// has no id. kNotFound: no such token, the allocation has ended, or an inactive user.
Result<Session> find_task_session(Pool& pool, const AllocationId& allocation, const std::string& token_hash);
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
