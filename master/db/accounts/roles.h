// Roles of users: the ladder of roles, the effective roles of a user, and the rows of grants. The permissions
// of each role are in the API (access.h).
#pragma once

#include <map>

#include "master/db/queries/page.h"

namespace det::db {

/// Roles in ascending order; each includes the permissions of the ones before it. kClusterAdmin is
/// cluster-wide only and is stored in users.admin.
enum class Role { kNone, kViewer, kEditor, kWorkspaceAdmin, kClusterAdmin };
/// Returns the stored name of a role, such as "VIEWER".
std::string_view role_name(Role role);
/// Returns the role with this stored name, or kNone.
Role role_of(std::string_view name);

/// Reads a column with the name of a role; kNone for "" and unknown names.
Status take(Rows::Row& row, Role& role);

/// Effective roles of one user, cluster-wide and per workspace. Not thread-safe.
class Grants {
 public:
  /// Adds a grant. Unset `workspace`: cluster-wide.
  void add(Role role, std::optional<std::int64_t> workspace);
  /// Caps all grants added so far at `most`.
  void limit(Role most);
  /// Highest role in a workspace, cluster-wide grants included.
  Role in(std::int64_t workspace) const;
  /// Highest cluster-wide role.
  Role everywhere() const { return everywhere_; }
  /// Highest role in any workspace, cluster-wide grants included.
  Role anywhere() const;
  /// Workspaces in which the user is at least a viewer. Unset: all workspaces.
  Visible visible() const;

 private:
  Role everywhere_ = Role::kNone;
  std::map<std::int64_t, Role> in_;
};

/// One grant as listed. `workspace` is unset for a cluster-wide grant.
struct GrantRow {
  UserId user;
  std::string username;
  Role role = Role::kNone;
  std::optional<std::int64_t> workspace;
  std::string workspace_name;
};
/// Lists grants by user, role and workspace, cluster administrators included. Unset arguments do not filter.
/// A workspace filter also returns cluster-wide grants.
Result<std::vector<GrantRow>> list_grants(Pool& pool, std::optional<UserId> user,
                                          std::optional<std::int64_t> workspace);

/// One grant to add or to remove. Unset `workspace`: cluster-wide.
struct Grant {
  UserId user;
  Role role = Role::kNone;
  std::optional<std::int64_t> workspace;
};
/// Adds grants in one transaction. Idempotent. kNotFound: no such user or workspace.
Status add_grants(Pool& pool, const std::vector<Grant>& grants);
/// Removes grants in one transaction. A missing grant is not an error. kFailedPrecondition: no active cluster
/// administrator would remain.
Status remove_grants(Pool& pool, const std::vector<Grant>& grants);

/// Kinds of objects that belong to a workspace.
enum class Placed {
  kWorkspace,
  kProject,
  kExperiment,
  kTrial,
  kCheckpoint,
  kTemplate,
  kTask,
  kModel,
  kAllocation
};
/// Returns the workspace of each object, in the order of `ids`; unset where the object does not exist. Ids
/// are text: numbers, UUIDs or names. kInvalidArgument: not a number where the kind has numeric ids.
Result<std::vector<std::optional<std::int64_t>>> workspaces_of(Pool& pool, Placed kind,
                                                               const std::vector<std::string>& ids);

}  // namespace det::db
