// Owns the rows of workspaces and projects, and in which project an experiment is. `visible` names the
// workspaces that the caller may look into; nothing: all.
#pragma once

#include "master/db/queries.h"

namespace det::db {

using Visible = std::optional<std::vector<std::int64_t>>;

/// Number 1 of workspaces and projects is there from the start and cannot be changed or removed.
inline constexpr std::int64_t kDefaultWorkspace = 1;
inline constexpr std::int64_t kDefaultProject = 1;

struct WorkspaceRow {
  std::int64_t id = 0;
  std::string name;
  std::optional<UserId> owner;
  std::string username;  ///< of the owner
  bool archived = false;
  std::int64_t num_projects = 0, num_experiments = 0;
  bool pinned = false;  ///< by WorkspaceFilter::viewer
};
struct WorkspaceFilter {
  Visible visible;
  std::string name;        ///< contained, in any case
  std::string exact_name;  ///< likewise but exactly this; "": any
  std::optional<bool> archived;
  std::vector<std::string> users;  ///< owned by any of these
  std::vector<std::int64_t> user_ids;
  UserId viewer;  ///< whose pins count
  std::optional<bool> pinned;
  bool by_name = false;  ///< in order of the name; else of the id
  Window window;
};
Result<Page<WorkspaceRow>> list_workspaces(Pool& pool, const WorkspaceFilter& filter);
/// kNotFound.
Result<WorkspaceRow> get_workspace(Pool& pool, std::int64_t id, UserId viewer = {});
/// The owner becomes its admin. kAlreadyExists.
Result<std::int64_t> create_workspace(Pool& pool, const std::string& name, UserId owner);
/// kAlreadyExists, kNotFound.
Status rename_workspace(Pool& pool, std::int64_t id, const std::string& name);
/// kNotFound. Repeats safely.
Status archive_workspace(Pool& pool, std::int64_t id, bool archived);
/// Repeats safely.
Status pin_workspace(Pool& pool, UserId user, std::int64_t id, bool pinned);
/// With its projects and templates. kFailedPrecondition while experiments are in it; kNotFound.
Status delete_workspace(Pool& pool, std::int64_t id);

struct ProjectRow {
  std::int64_t id = 0, workspace = 0;
  std::string name, description, workspace_name;
  std::optional<UserId> owner;
  std::string username;
  bool archived = false;  ///< itself or its workspace
  std::int64_t num_experiments = 0, num_active_experiments = 0, num_runs = 0;
  std::string key;    ///< short, for people; unique
  std::string notes;  ///< JSON list of objects of "name" and "contents"
  std::optional<WallTime> last_experiment;
};
struct ProjectFilter {
  std::int64_t workspace = 0;
  std::string name;
  std::optional<bool> archived;
  std::vector<std::string> users;
  std::vector<std::int64_t> user_ids;
  bool by_name = false;
  Window window;
};
Result<Page<ProjectRow>> list_projects(Pool& pool, const ProjectFilter& filter);
/// kNotFound.
Result<ProjectRow> get_project(Pool& pool, std::int64_t id);
/// The project of these names; kNotFound, also when `visible` leaves it out.
Result<std::int64_t> find_project(Pool& pool, const std::string& workspace, const std::string& project,
                                  const Visible& visible);
/// Where an experiment goes, and the config policies that bind it there: YAML, "" where there are none.
struct Destination {
  std::int64_t project = 0, workspace = 0;  ///< 0: there is no such project
  std::string name, workspace_name;
  bool archived = false;  ///< the project or its workspace
  std::string cluster_policies, workspace_policies;
};
/// One statement, since submissions wait for it: by number, or by names among what is visible.
Result<Destination> find_destination(Pool& pool, const std::string& workload, std::int64_t project);
Result<Destination> find_destination(Pool& pool, const std::string& workload, const std::string& workspace,
                                     const std::string& project, const Visible& visible);
/// kNotFound, also when `visible` leaves it out.
Result<std::int64_t> find_project_by_key(Pool& pool, const std::string& key, const Visible& visible);
/// `key` "": one is made of the id. kAlreadyExists.
Result<std::int64_t> create_project(Pool& pool, std::int64_t workspace, const std::string& name,
                                    const std::string& description, UserId owner,
                                    const std::string& key = "");
/// Absent: as it is. kAlreadyExists, kNotFound.
Status change_project(Pool& pool, std::int64_t id, const std::optional<std::string>& name,
                      const std::optional<std::string>& description,
                      const std::optional<std::string>& key = std::nullopt);
/// All of them anew, or one more at the end (`notes` is a list). kNotFound.
Status set_project_notes(Pool& pool, std::int64_t id, const std::string& notes);
Status add_project_notes(Pool& pool, std::int64_t id, const std::string& notes);
Status archive_project(Pool& pool, std::int64_t id, bool archived);
Status move_project(Pool& pool, std::int64_t id, std::int64_t workspace);
/// kFailedPrecondition while experiments are in it; kNotFound.
Status delete_project(Pool& pool, std::int64_t id);

/// All that exist. Repeats safely.
Status move_experiments(Pool& pool, const std::vector<std::int64_t>& ids, std::int64_t project);

}  // namespace det::db
