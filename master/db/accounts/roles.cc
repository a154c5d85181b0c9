#include "master/db/accounts/roles.h"

#include <algorithm>

#include "master/db/accounts/users.h"

namespace det::db {
namespace {

/// Statements of workspaces_of().
const std::map<Placed, std::string>& lookups() {
  // WITH ORDINALITY and the outer joins keep one row per id, in the order of the request.
  const auto lookup = [](const char* ids, const char* workspace, const std::string& joins) {
    return std::string("SELECT ") + workspace + " FROM unnest(" + ids + ") WITH ORDINALITY i (id, place)" +
           joins + " ORDER BY i.place";
  };
  const char *const numbers = "$1::text[]::bigint[]", *const texts = "$1::text[]";
  const std::string project = " LEFT JOIN projects p ON p.id = e.project_id";
  const std::string experiment = " LEFT JOIN experiments e ON e.id = t.experiment_id" + project;
  const char* const either = "coalesce(p.workspace_id, c.workspace_id)";
  static const std::map<Placed, std::string> all = {
      {Placed::kWorkspace, lookup(numbers, "w.id", " LEFT JOIN workspaces w ON w.id = i.id")},
      {Placed::kProject, lookup(numbers, "p.workspace_id", " LEFT JOIN projects p ON p.id = i.id")},
      {Placed::kExperiment,
       lookup(numbers, "p.workspace_id", " LEFT JOIN experiments e ON e.id = i.id" + project)},
      {Placed::kTrial, lookup(numbers, "p.workspace_id", " LEFT JOIN trials t ON t.id = i.id" + experiment)},
      {Placed::kCheckpoint, lookup(texts, "p.workspace_id",
                                   " LEFT JOIN checkpoints c ON c.uuid = i.id"
                                   " LEFT JOIN trials t ON t.id = c.trial_id" +
                                       experiment)},
      {Placed::kTemplate, lookup(texts, "t.workspace_id", " LEFT JOIN templates t ON t.name = i.id")},
      {Placed::kTask, lookup(texts, either,
                             " LEFT JOIN trials t ON t.task_id = i.id" + experiment +
                                 " LEFT JOIN commands c ON c.task_id = i.id")},
      {Placed::kModel,
       lookup(texts, "m.workspace_id", " LEFT JOIN models m ON m.name = i.id OR m.id::text = i.id")},
      {Placed::kAllocation, lookup(texts, either,
                                   " LEFT JOIN allocations a ON a.id = i.id"
                                   " LEFT JOIN trials t ON t.id = a.trial_id" +
                                       experiment + " LEFT JOIN commands c ON c.id = a.command_id")}};
  return all;
}

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kViewer:
      return "VIEWER";
    case Role::kEditor:
      return "EDITOR";
    case Role::kWorkspaceAdmin:
      return "WORKSPACE_ADMIN";
    case Role::kClusterAdmin:
      return "CLUSTER_ADMIN";
    case Role::kNone:
      break;
  }
  return "NONE";
}

Role role_of(std::string_view name) {
  for (const Role role : {Role::kViewer, Role::kEditor, Role::kWorkspaceAdmin, Role::kClusterAdmin})
    if (name == role_name(role)) return role;
  return Role::kNone;
}

Status take(Rows::Row& row, Role& role) {
  role = role_of(row.next<std::string>());
  return {};
}

void Grants::add(Role role, std::optional<std::int64_t> workspace) {
  Role& known = workspace ? in_[*workspace] : everywhere_;
  known = std::max(known, role);
}

void Grants::limit(Role most) {
  everywhere_ = std::min(everywhere_, most);
  for (auto& [workspace, role] : in_) role = std::min(role, most);
}

Role Grants::in(std::int64_t workspace) const {
  const auto found = in_.find(workspace);
  return found == in_.end() ? everywhere_ : std::max(everywhere_, found->second);
}

Role Grants::anywhere() const {
  Role best = everywhere_;
  for (const auto& [workspace, role] : in_) best = std::max(best, role);
  return best;
}

Visible Grants::visible() const {
  if (everywhere_ >= Role::kViewer) return std::nullopt;
  std::vector<std::int64_t> workspaces;
  for (const auto& [workspace, role] : in_)
    if (role >= Role::kViewer) workspaces.push_back(workspace);
  return workspaces;
}

Result<std::vector<GrantRow>> list_grants(Pool& pool, std::optional<UserId> user,
                                          std::optional<std::int64_t> workspace) {
  using G = GrantRow;
  static const Columns<G> kColumns(column<&G::user>("g.user_id"), column<&G::username>("u.name"),
                                   column<&G::role>("g.role"), column<&G::workspace>("g.workspace_id"),
                                   column<&G::workspace_name>("coalesce(w.name, '')"));
  // Cluster administrators have no row in grants; the UNION lists them like the others.
  static const std::string sql = kColumns.select(
      " FROM (SELECT user_id, role, workspace_id FROM grants"
      "  UNION ALL SELECT id, 'CLUSTER_ADMIN', NULL FROM users WHERE admin) g"
      " JOIN users u ON u.id = g.user_id LEFT JOIN workspaces w ON w.id = g.workspace_id"
      " WHERE ($1::bigint IS NULL OR g.user_id = $1)"
      " AND ($2::bigint IS NULL OR coalesce(g.workspace_id, $2) = $2)"
      " ORDER BY g.user_id, g.role, g.workspace_id NULLS FIRST");
  return kColumns.read(pool.query(sql, user, workspace));
}

Status add_grants(Pool& pool, const std::vector<Grant>& grants) {
  Status done = pool.in_transaction([&](Connection& connection) -> Status {
    for (const Grant& grant : grants) {
      // Cluster administration is a column of users, every other role a row of grants.
      const bool admin = grant.role == Role::kClusterAdmin;
      TRY_ASSIGN(
          const Rows rows,
          admin ? connection.query("UPDATE users SET admin = true WHERE id = $1 RETURNING id", grant.user)
                : connection.query("WITH made AS (INSERT INTO grants (user_id, role, workspace_id)"
                                   " SELECT id, $2, $3 FROM users WHERE id = $1 ON CONFLICT DO NOTHING)"
                                   " SELECT id FROM users WHERE id = $1",
                                   grant.user, role_name(grant.role), grant.workspace));
      if (rows.empty()) return no_user(grant.user);
    }
    return {};
  });
  // The foreign key on workspaces failed.
  if (!done && done.error().code == Code::kFailedPrecondition)
    return fail(Code::kNotFound, "there is no such workspace");
  return done;
}

Status remove_grants(Pool& pool, const std::vector<Grant>& grants) {
  std::vector<std::int64_t> admins;
  for (const Grant& grant : grants)
    if (grant.role == Role::kClusterAdmin) admins.push_back(grant.user.value);
  return pool.in_transaction([&](Connection& connection) -> Status {
    if (!admins.empty()) TRY(lock_admins(connection, admins));
    for (const Grant& grant : grants) {
      if (grant.role == Role::kClusterAdmin) {
        TRY(connection.query("UPDATE users SET admin = false WHERE id = $1", grant.user));
      } else {
        TRY(
            connection.query("DELETE FROM grants WHERE user_id = $1 AND role = $2"
                             " AND workspace_id IS NOT DISTINCT FROM $3",
                             grant.user, role_name(grant.role), grant.workspace));
      }
    }
    return admins.empty() ? Status() : check_admin(connection);
  });
}

Result<std::vector<std::optional<std::int64_t>>> workspaces_of(Pool& pool, Placed kind,
                                                               const std::vector<std::string>& ids) {
  TRY_ASSIGN(const Rows rows, pool.query(lookups().at(kind), ids));
  return rows.column<std::optional<std::int64_t>>();
}

}  // namespace det::db
