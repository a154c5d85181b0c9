// Rows of projects, and the project of each experiment. `visible` restricts a query to the workspaces that
// the caller may see.
#pragma once

#include "master/db/queries/page.h"

namespace det::db {

/// Id of a project that exists from the first migration. The API refuses to change or delete it.
inline constexpr std::int64_t kDefaultProject = 1;

/// One project as listed.
struct ProjectRow {
  std::int64_t id = 0, workspace = 0;
  std::string name, description, workspace_name;
  std::optional<UserId> owner;
  /// Name of the owner.
  std::string username;
  bool archived = false;  ///< The project or its workspace is archived.
  /// Runs are trials.
  std::int64_t num_experiments = 0, num_active_experiments = 0, num_runs = 0;
  /// Unique short key for users; by default "P" and the id.
  std::string key;
  std::string notes;  ///< JSON list of objects with "name" and "contents"; "[]" in lists of projects.
  /// Submission time of the newest experiment.
  std::optional<WallTime> last_experiment;
  std::optional<std::string> deletion;  ///< Of the project, else of its workspace; see Container.
};
/// Filter of list_projects(). Empty members do not filter; `workspace` is required.
struct ProjectFilter {
  std::int64_t workspace = 0;
  /// Substring, case-insensitive.
  std::string name;
  std::optional<bool> archived;
  std::vector<std::string> users;
  std::vector<std::int64_t> user_ids;
  /// Sort by name instead of id.
  bool by_name = false;
  Window window;
};
/// Lists the projects of a workspace, one page at a time.
Result<Page<ProjectRow>> list_projects(Pool& pool, const ProjectFilter& filter);
/// Records that a user looks at a project. kFailedPrecondition: no such project.
Status visit_project(Pool& pool, UserId user, std::int64_t project);
/// Lists the visible projects that a user looked at, the latest first.
Result<std::vector<ProjectRow>> visited_projects(Pool& pool, UserId user, const Visible& visible,
                                                 std::int64_t limit);
/// Returns one project. kNotFound.
Result<ProjectRow> get_project(Pool& pool, std::int64_t id);
/// Returns the id of a project by name. kNotFound, also when it is not visible.
Result<std::int64_t> find_project(Pool& pool, const std::string& workspace, const std::string& project,
                                  const Visible& visible);
/// Target project of a submission, and the config policies (YAML, "" for none) that apply there.
struct Destination {
  /// 0: no such project, or it is not visible.
  std::int64_t project = 0, workspace = 0;
  std::string name, workspace_name;
  bool archived = false;  ///< The project or its workspace is archived.
  bool deleting = false;  ///< A deletion of the project or of its workspace is in progress.
  std::string cluster_policies, workspace_policies;
  std::string checkpoint_storage;  ///< Of the workspace, as WorkspaceRow has it; "": the master's.
  std::string agent_account;       ///< Of the workspace, as WorkspaceRow has it; "": none.
};
/// Finds the target of a submission, by project id or by visible names. One statement, because it is on the
/// submission path. `workload` selects the policies. A missing project is not an error.
Result<Destination> find_destination(Pool& pool, const std::string& workload, std::int64_t project);
Result<Destination> find_destination(Pool& pool, const std::string& workload, const std::string& workspace,
                                     const std::string& project, const Visible& visible);
/// Returns the id of a project by key. kNotFound, also when it is not visible.
Result<std::int64_t> find_project_by_key(Pool& pool, const std::string& key, const Visible& visible);
/// Creates a project and returns its id. An empty `key` is derived from the id. kAlreadyExists: name or key
/// is taken.
Result<std::int64_t> create_project(Pool& pool, std::int64_t workspace, const std::string& name,
                                    const std::string& description, UserId owner,
                                    const std::string& key = "");
/// Changes a project. Unset arguments keep their value. Errors: kAlreadyExists, kNotFound.
Status change_project(Pool& pool, std::int64_t id, const std::optional<std::string>& name,
                      const std::optional<std::string>& description,
                      const std::optional<std::string>& key = std::nullopt);
/// Range of a metric over the best validations of the experiments of a project.
struct MetricRange {
  std::string name;  ///< "validation.NAME" or "training.NAME".
  double min = 0, max = 0;
};
/// Lists the ranges of all numeric metrics by name, at most 10,000.
Result<std::vector<MetricRange>> metric_ranges(Pool& pool, std::int64_t project);
/// A hyperparameter or metric of experiments.
struct ProjectField {
  std::string name;      ///< "hp.NAME", "validation.NAME" or "training.NAME"; nested names have dots
  bool numeric = false;  ///< all its values are numbers
};
/// Lists the hyperparameters and numeric metrics of the best trials of the newest 1,000 experiments of a
/// project, by name, at most 10,000.
Result<std::vector<ProjectField>> project_fields(Pool& pool, std::int64_t project);
/// Limits of the notes of one project: their number, and the bytes of their JSON.
inline constexpr std::int64_t kMaxProjectNotes = 100, kMaxProjectNoteBytes = 8 << 20;
/// Replaces the notes, or appends one to them. `notes` is a JSON list. Errors: kNotFound; kFailedPrecondition
/// (an appended note exceeds the limits; replaced ones are checked by the caller).
Status set_project_notes(Pool& pool, std::int64_t id, const std::string& notes);
Status add_project_notes(Pool& pool, std::int64_t id, const std::string& notes);
/// Archives or unarchives a project. Idempotent. kNotFound.
Status archive_project(Pool& pool, std::int64_t id, bool archived);
/// Moves a project to another workspace. Errors: kNotFound; kAlreadyExists (the name is taken there);
/// kFailedPrecondition (it or its workspace is being deleted).
Status move_project(Pool& pool, std::int64_t id, std::int64_t workspace);

/// Moves experiments to a project. Unknown ids are ignored. Idempotent. Errors: kFailedPrecondition (one is
/// in a project or workspace that is being deleted; none is moved).
Status move_experiments(Pool& pool, const std::vector<std::int64_t>& ids, std::int64_t project);

}  // namespace det::db
