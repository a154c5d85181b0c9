// Owns who has which role where: the ladder of roles, what a user's roles add up to, and their rows. What a
// role may do is the API's (access.h).
#pragma once

#include <map>

#include "master/db/queries.h"

namespace det::db {

/// Each may do what the ones before it may. kClusterAdmin holds for the whole cluster only, and is
/// users.admin.
enum class Role { kNone, kViewer, kEditor, kWorkspaceAdmin, kClusterAdmin };
/// As stored: "VIEWER".
std::string_view role_name(Role role);
/// kNone for any other name.
Role role_of(std::string_view name);

/// What the roles of one user add up to.
class Grants {
 public:
  /// Without a workspace: in all of them.
  void add(Role role, std::optional<std::int64_t> workspace);
  /// Nothing above `most` from here on.
  void limit(Role most);
  /// The highest in a workspace.
  Role in(std::int64_t workspace) const;
  /// The highest that holds everywhere.
  Role everywhere() const { return everywhere_; }
  /// The workspaces that may be looked into; nothing: all of them.
  std::optional<std::vector<std::int64_t>> visible() const;

 private:
  Role everywhere_ = Role::kNone;
  std::map<std::int64_t, Role> in_;
};

struct GrantRow {
  UserId user;
  std::string username;
  Role role = Role::kNone;
  std::optional<std::int64_t> workspace;
  std::string workspace_name;
};
/// In order of user, role, workspace; cluster admins among them. Absent arguments do not filter; a workspace
/// also lists what holds everywhere.
Result<std::vector<GrantRow>> list_grants(Pool& pool, std::optional<UserId> user,
                                          std::optional<std::int64_t> workspace);

struct Grant {
  UserId user;
  Role role = Role::kNone;
  std::optional<std::int64_t> workspace;
};
/// All or nothing. Repeats safely. kNotFound: no such user or workspace.
Status add_grants(Pool& pool, const std::vector<Grant>& grants);
/// All or nothing; what is not there is no failure. kFailedPrecondition: the last active cluster admin.
Status remove_grants(Pool& pool, const std::vector<Grant>& grants);

/// What has a place in a workspace.
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
/// The workspace of each, in the order of `ids`; nothing for what does not exist. Ids as text: numbers,
/// uuids, names.
Result<std::vector<std::optional<std::int64_t>>> workspaces_of(Pool& pool, Placed kind,
                                                               const std::vector<std::string>& ids);

}  // namespace det::db
