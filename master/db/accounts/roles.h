// Roles of users: the ladder of roles, the effective roles of a user, and the rows of grants. The permissions
// of each role are in the API (access.h).
#pragma once

#include <map>

#include "master/db/queries/page.h"

namespace det::db {

/// Roles in ascending order; each includes the permissions of the ones before it, except those of
/// kWorkspaceCreator. kWorkspaceCreator and kClusterAdmin are cluster-wide only. kClusterAdmin is stored in
/// users.admin.
enum class Role {
  kNone,
  kWorkspaceCreator,
  kModelRegistryViewer,  ///< reads models and their versions
  kViewer,
  kEditorRestricted,  ///< an editor without commands, generic tasks and ports of tasks
  kEditor,
  kWorkspaceAdmin,
  kClusterAdmin
};
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
  /// Workspaces in which the user has at least the role `least`. Unset: all workspaces.
  Visible visible(Role least = Role::kViewer) const;
  /// Whether the user has the role WorkspaceCreator.
  bool creates_workspaces() const { return creates_workspaces_; }

 private:
  Role everywhere_ = Role::kNone;
  bool creates_workspaces_ = false;
  std::map<std::int64_t, Role> in_;
};

/// One grant as listed. `workspace` is unset for a cluster-wide grant. It is of a user or of a group; the
/// other one is 0.
struct GrantRow {
  UserId user;
  std::int64_t group = 0;
  Role role = Role::kNone;
  std::optional<std::int64_t> workspace;
};
/// Filter of list_grants(). Unset members do not filter.
struct GrantFilter {
  std::optional<UserId> user;             ///< own grants and those of its groups
  std::optional<std::int64_t> workspace;  ///< cluster-wide grants, too
  std::optional<std::int64_t> group;
};
/// Lists grants by group, user, role and workspace, cluster administrators included.
Result<std::vector<GrantRow>> list_grants(Pool& pool, const GrantFilter& filter);

/// One grant to add or to remove. Unset `workspace`: cluster-wide.
struct Grant {
  UserId user;
  Role role = Role::kNone;
  std::optional<std::int64_t> workspace;
  std::int64_t group = 0;  ///< Not 0: the grant is of this group, and `user` is ignored.
};
/// Adds grants in one transaction. Errors: kNotFound (user, group or workspace); kAlreadyExists (a grant
/// exists); kInvalidArgument (a group as cluster administrator).
Status add_grants(Pool& pool, const std::vector<Grant>& grants);
/// Removes grants in one transaction. Errors: kNotFound (a grant does not exist); kFailedPrecondition (no
/// active cluster administrator would remain).
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
