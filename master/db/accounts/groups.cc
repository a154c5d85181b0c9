#include "master/db/accounts/groups.h"

#include <algorithm>

namespace det::db {
namespace {

const Columns<Group>& group_columns() {
  static const Columns<Group> columns(
      column<&Group::id>("o.id"), column<&Group::name>("o.name"),
      column<&Group::members>("(SELECT count(*) FROM group_members m WHERE m.group_id = o.id)"));
  return columns;
}

std::string group_name(std::int64_t id) { return "group " + std::to_string(id); }

/// Replaces the text of a violated unique index.
Result<Rows> unique_group(Result<Rows> rows, const std::string& name) {
  if (!rows && rows.error().code == Code::kAlreadyExists)
    return fail(Code::kAlreadyExists, "group " + name + " already exists; choose another name");
  return rows;
}

std::vector<std::int64_t> numbers(const std::vector<UserId>& users) {
  std::vector<std::int64_t> all;
  for (const UserId user : users) all.push_back(user.value);
  return all;
}

/// Fails with kNotFound for the first id that `select` does not find.
Status check_ids(Connection& connection, Sql select, const char* noun, const std::vector<std::int64_t>& ids) {
  TRY_ASSIGN(const Rows rows, connection.query(select, ids));
  const auto known = rows.column<std::int64_t>();
  for (const std::int64_t id : ids)
    if (std::find(known.begin(), known.end(), id) == known.end())
      return fail(Code::kNotFound, std::string(noun) + " " + std::to_string(id) + " not found");
  return {};
}

Status add_members(Connection& connection, const std::vector<std::int64_t>& groups,
                   const std::vector<UserId>& users) {
  if (users.empty() || groups.empty()) return {};
  TRY(check_ids(connection, "SELECT id FROM users WHERE id = ANY ($1) FOR SHARE", "user", numbers(users)));
  TRY(connection.query(
      "INSERT INTO group_members (group_id, user_id) SELECT g, u FROM unnest($1::bigint[]) g,"
      " unnest($2::bigint[]) u ON CONFLICT DO NOTHING",
      groups, numbers(users)));
  return {};
}

}  // namespace

Result<std::int64_t> create_group(Pool& pool, const std::string& name, const std::vector<UserId>& members) {
  std::int64_t id = 0;
  TRY(pool.in_transaction([&](Connection& connection) -> Status {
    TRY_ASSIGN(const Rows rows,
               unique_group(connection.query("INSERT INTO user_groups (name) VALUES ($1) RETURNING id", name),
                            name));
    id = rows[0].next<std::int64_t>();
    return add_members(connection, {id}, members);
  }));
  return id;
}

Result<Group> get_group(Pool& pool, std::int64_t id) {
  static const std::string sql = group_columns().select(" FROM user_groups o WHERE o.id = $1");
  return group_columns().one(pool.query(sql, id), group_name(id));
}

Result<Page<Group>> list_groups(Pool& pool, const GroupFilter& filter) {
  static const std::string from =
      " FROM user_groups o WHERE ($1 = '' OR o.name = $1) AND ($2::bigint IS NULL OR EXISTS"
      " (SELECT FROM group_members m WHERE m.group_id = o.id AND m.user_id = $2))";
  return list_page(pool, from, "o.id" + direction(filter.window), Params(filter.name, filter.user),
                   filter.window, group_columns());
}

Result<std::vector<User>> group_members(Pool& pool, std::int64_t id) {
  static const std::string sql = user_columns().select(
      " FROM users u JOIN group_members m ON m.user_id = u.id WHERE m.group_id = $1 ORDER BY u.id");
  return user_columns().read(pool.query(sql, id));
}

Status change_group(Pool& pool, std::int64_t id, const GroupChange& change) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    TRY(found(unique_group(connection.query("UPDATE user_groups SET name = coalesce($2::text, name)"
                                            " WHERE id = $1",
                                            id, change.name),
                           change.name.value_or("")),
              group_name(id)));
    TRY(add_members(connection, {id}, change.add));
    for (const UserId user : change.remove) {
      TRY(found(connection.query("DELETE FROM group_members WHERE group_id = $1 AND user_id = $2", id, user),
                "user " + std::to_string(user.value) + " in " + group_name(id)));
    }
    return {};
  });
}

Status delete_group(Pool& pool, std::int64_t id) {
  return found(pool.query("DELETE FROM user_groups WHERE id = $1", id), group_name(id));
}

Status assign_groups(Pool& pool, const std::vector<UserId>& users, const std::vector<std::int64_t>& add,
                     const std::vector<std::int64_t>& remove) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    std::vector<std::int64_t> groups = add;
    groups.insert(groups.end(), remove.begin(), remove.end());
    TRY(check_ids(connection, "SELECT id FROM user_groups WHERE id = ANY ($1) FOR SHARE", "group", groups));
    TRY(add_members(connection, add, users));
    TRY(connection.query("DELETE FROM group_members WHERE group_id = ANY ($1) AND user_id = ANY ($2)", remove,
                         numbers(users)));
    return {};
  });
}

}  // namespace det::db
