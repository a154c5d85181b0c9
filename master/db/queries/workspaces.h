// Rows of workspaces.
#pragma once

#include <set>

#include "master/db/queries/page.h"

namespace det::db {

/// Id of a workspace that exists from the first migration. The API refuses to change or delete it.
inline constexpr std::int64_t kDefaultWorkspace = 1;

/// One workspace as listed.
struct WorkspaceRow {
  std::int64_t id = 0;
  std::string name;
  std::optional<UserId> owner;
  std::string username;  ///< Name of the owner.
  bool archived = false;
  /// Projects and experiments in the workspace.
  std::int64_t num_projects = 0, num_experiments = 0;
  bool pinned = false;                  ///< Pinned by WorkspaceFilter::viewer.
  std::optional<std::string> deletion;  ///< See Container in deletions.h.
  /// JSON `{"checkpoint_storage": {…}}`, the default of its experiments. Secrets are sealed (at_rest.h).
  std::optional<std::string> checkpoint_storage;
  /// JSON: `uid` with `user`, and `gid` with `group`, of its tasks; each pair or none. Unset: the user's.
  std::optional<std::string> agent_account;
};
/// Filter of list_workspaces(). Empty members do not filter.
struct WorkspaceFilter {
  Visible visible;
  std::string name;        ///< The whole name, case-insensitive.
  std::string exact_name;  ///< The whole name, case-sensitive.
  std::optional<bool> archived;
  std::vector<std::string> users;  ///< Owned by any of these.
  std::vector<std::int64_t> user_ids;
  UserId viewer;  ///< User for `pinned`.
  std::optional<bool> pinned;
  bool by_name = false;  ///< Sort by name instead of id.
  Window window;
};
/// Lists workspaces, one page at a time.
Result<Page<WorkspaceRow>> list_workspaces(Pool& pool, const WorkspaceFilter& filter);
/// Returns one workspace. kNotFound.
Result<WorkspaceRow> get_workspace(Pool& pool, std::int64_t id, UserId viewer = {});
/// Creates a workspace, makes its owner a workspace admin, pins it for the owner and returns its id.
/// kAlreadyExists: the name is taken.
Result<std::int64_t> create_workspace(Pool& pool, const std::string& name, UserId owner,
                                      const std::optional<std::string>& checkpoint_storage = {},
                                      const std::optional<std::string>& agent_account = {});
/// Sets the default checkpoint storage of a workspace, in plain; unset: the master's. kNotFound.
Status set_workspace_storage(Pool& pool, std::int64_t id, const std::optional<std::string>& storage);
/// Sets the user and group of the tasks of a workspace, as WorkspaceRow has them. kNotFound.
Status set_workspace_account(Pool& pool, std::int64_t id, const std::optional<std::string>& account);
/// Renames a workspace. Errors: kAlreadyExists, kNotFound.
Status rename_workspace(Pool& pool, std::int64_t id, const std::string& name);
/// Archives or unarchives a workspace. Idempotent. kNotFound.
Status archive_workspace(Pool& pool, std::int64_t id, bool archived);
/// Pins or unpins a workspace for a user. Idempotent. kFailedPrecondition: no such workspace.
Status pin_workspace(Pool& pool, UserId user, std::int64_t id, bool pinned);

// Bindings of resource pools: a pool with bindings runs work of its workspaces only.

/// Returns the workspaces of a pool, by id. Empty: the pool is open to all.
Result<std::vector<std::int64_t>> bound_workspaces(Pool& pool, const std::string& resource_pool);
/// Returns the pools that run no work of a workspace.
Result<std::set<std::string>> closed_pools(Pool& pool, std::int64_t workspace);

/// How change_bindings() uses its workspaces.
enum class BindingChange { kAdd, kRemove, kReplace };
/// Changes the bindings of a pool. Idempotent. Errors: kFailedPrecondition (no such workspace).
Status change_bindings(Pool& pool, const std::string& resource_pool, BindingChange change,
                       const std::vector<std::int64_t>& workspaces);

}  // namespace det::db
