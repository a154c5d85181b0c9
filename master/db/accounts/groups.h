// Rows of user groups and their members. A member has the roles of its groups (roles.h).
#pragma once

#include "master/db/accounts/users.h"

namespace det::db {

/// One row of `user_groups`.
struct Group {
  std::int64_t id = 0;
  std::string name;          ///< unique
  std::int64_t members = 0;  ///< number of users
};

/// Creates a group. Returns its id. Errors: kAlreadyExists (the name is taken); kNotFound (a user).
Result<std::int64_t> create_group(Pool& pool, const std::string& name, const std::vector<UserId>& members);
/// Finds a group by id. kNotFound.
Result<Group> get_group(Pool& pool, std::int64_t id);

/// Filter of list_groups(). Unset members match every group.
struct GroupFilter {
  std::string name;            ///< the whole name
  std::optional<UserId> user;  ///< groups with this member
  Window window;
};
/// Lists groups by id, one page at a time.
Result<Page<Group>> list_groups(Pool& pool, const GroupFilter& filter);
/// Lists the members of a group by id. Empty for an unknown group.
Result<std::vector<User>> group_members(Pool& pool, std::int64_t id);

/// Changes of a group. Unset members keep their value.
struct GroupChange {
  std::optional<std::string> name;
  std::vector<UserId> add;     ///< users that are members already stay members
  std::vector<UserId> remove;  ///< each must be a member
};
/// Applies `change`, all or nothing. Errors: kNotFound (group, user or member); kAlreadyExists (the name is
/// taken).
Status change_group(Pool& pool, std::int64_t id, const GroupChange& change);
/// Deletes a group with its roles. kNotFound.
Status delete_group(Pool& pool, std::int64_t id);
/// Adds users to groups and removes them from others, all or nothing. Idempotent. kNotFound: user or group.
Status assign_groups(Pool& pool, const std::vector<UserId>& users, const std::vector<std::int64_t>& add,
                     const std::vector<std::int64_t>& remove);

}  // namespace det::db
