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
    case Role::kWorkspaceCreator:
      return "WORKSPACE_CREATOR";
    case Role::kModelRegistryViewer:
      return "MODEL_REGISTRY_VIEWER";
    case Role::kViewer:
      return "VIEWER";
    case Role::kEditorRestricted:
      return "EDITOR_RESTRICTED";
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
  for (const Role role : {Role::kWorkspaceCreator, Role::kModelRegistryViewer, Role::kViewer,
                          Role::kEditorRestricted, Role::kEditor, Role::kWorkspaceAdmin, Role::kClusterAdmin})
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
  creates_workspaces_ = creates_workspaces_ || role == Role::kWorkspaceCreator;
}

void Grants::limit(Role most) {
  everywhere_ = std::min(everywhere_, most);
  creates_workspaces_ = creates_workspaces_ && most >= Role::kEditorRestricted;
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

Visible Grants::visible(Role least) const {
  if (everywhere_ >= least) return std::nullopt;
  std::vector<std::int64_t> workspaces;
  for (const auto& [workspace, role] : in_)
    if (role >= least) workspaces.push_back(workspace);
  return workspaces;
}

Result<std::vector<GrantRow>> list_grants(Pool& pool, const GrantFilter& filter) {
  using G = GrantRow;
  static const Columns<G> kColumns(column<&G::user>("g.user_id"), column<&G::group>("g.group_id"),
                                   column<&G::role>("g.role"), column<&G::workspace>("g.workspace_id"));
  // Cluster administrators have no row in grants; the UNION lists them like the others.
  static const std::string sql = kColumns.select(
      " FROM (SELECT user_id, 0::bigint AS group_id, role, workspace_id FROM grants"
      "  UNION ALL SELECT id, 0, 'CLUSTER_ADMIN', NULL FROM users WHERE admin"
      "  UNION ALL SELECT 0, group_id, role, workspace_id FROM group_grants) g"
      " WHERE ($1::bigint IS NULL OR g.user_id = $1"
      "  OR g.group_id IN (SELECT m.group_id FROM group_members m WHERE m.user_id = $1))"
      " AND ($2::bigint IS NULL OR coalesce(g.workspace_id, $2) = $2)"
      " AND ($3::bigint IS NULL OR g.group_id = $3)"
      " ORDER BY g.group_id, g.user_id, g.role, g.workspace_id NULLS FIRST");
  return kColumns.read(pool.query(sql, filter.user, filter.workspace, filter.group));
}

namespace {

/// Statements for grants of one kind of holder. $1: the holder, $2: the role, $3: the workspace.
struct GrantSql {
  const char *noun, *lock, *insert, *remove;
};
constexpr GrantSql kUserGrants = {
    "user", "SELECT FROM users WHERE id = $1 FOR SHARE",
    "INSERT INTO grants (user_id, role, workspace_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
    "DELETE FROM grants WHERE user_id = $1 AND role = $2 AND workspace_id IS NOT DISTINCT FROM $3"};
constexpr GrantSql kGroupGrants = {
    "group", "SELECT FROM user_groups WHERE id = $1 FOR SHARE",
    "INSERT INTO group_grants (group_id, role, workspace_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
    "DELETE FROM group_grants WHERE group_id = $1 AND role = $2 AND workspace_id IS NOT DISTINCT FROM $3"};

/// Cluster administration is a column of users, every other role a row of grants or group_grants.
Status add_grant(Connection& connection, const Grant& grant) {
  const GrantSql& sql = grant.group != 0 ? kGroupGrants : kUserGrants;
  const std::int64_t holder = grant.group != 0 ? grant.group : grant.user.value;
  const std::string named = std::string(sql.noun) + " " + std::to_string(holder);
  if (grant.role == Role::kClusterAdmin && grant.group != 0)
    return fail(Code::kInvalidArgument, "ClusterAdmin is a role of users; assign it to each of them");
  TRY_ASSIGN(const Rows known, connection.query(sql.lock, holder));
  if (known.empty()) return fail(Code::kNotFound, named + " not found");
  TRY_ASSIGN(const Rows rows,
             grant.role == Role::kClusterAdmin
                 ? connection.query("UPDATE users SET admin = true WHERE id = $1 AND NOT admin", holder)
                 : connection.query(sql.insert, holder, role_name(grant.role), grant.workspace));
  if (rows.affected() > 0) return {};
  return fail(Code::kAlreadyExists, named + " has this role in this scope: row already exists");
}

Status remove_grant(Connection& connection, const Grant& grant) {
  const GrantSql& sql = grant.group != 0 ? kGroupGrants : kUserGrants;
  const std::int64_t holder = grant.group != 0 ? grant.group : grant.user.value;
  TRY_ASSIGN(const Rows rows,
             grant.role == Role::kClusterAdmin && grant.group == 0
                 ? connection.query("UPDATE users SET admin = false WHERE id = $1 AND admin", holder)
                 : connection.query(sql.remove, holder, role_name(grant.role), grant.workspace));
  if (rows.affected() > 0) return {};
  return fail(Code::kNotFound, "role assignment not found: " + std::string(sql.noun) + " " +
                                   std::to_string(holder) + " does not have this role in this scope");
}

}  // namespace

Status add_grants(Pool& pool, const std::vector<Grant>& grants) {
  Status done = pool.in_transaction([&](Connection& connection) -> Status {
    for (const Grant& grant : grants) TRY(add_grant(connection, grant));
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
    if (grant.role == Role::kClusterAdmin && grant.group == 0) admins.push_back(grant.user.value);
  return pool.in_transaction([&](Connection& connection) -> Status {
    if (!admins.empty()) TRY(lock_admins(connection, admins));
    for (const Grant& grant : grants) TRY(remove_grant(connection, grant));
    return admins.empty() ? Status() : check_admin(connection);
  });
}

Result<std::vector<std::optional<std::int64_t>>> workspaces_of(Pool& pool, Placed kind,
                                                               const std::vector<std::string>& ids) {
  TRY_ASSIGN(const Rows rows, pool.query(lookups().at(kind), ids));
  return rows.column<std::optional<std::int64_t>>();
}

}  // namespace det::db
