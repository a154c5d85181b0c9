// ProjectService: projects, their notes, and moves of experiments between them.
#pragma once

#include "det/v1/project.pb.h"
#include "master/api/accounts/deletions.h"
#include "master/api/service.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/workspaces.h"

namespace det::api {

/// A project groups experiments in a workspace. Project 1 is the default one and cannot be changed.
class ProjectService final : public Service {
 public:
  /// `deletions` must outlive the service.
  ProjectService(const Context& context, Deletions& deletions);
  /// Returns a project. Errors: kNotFound.
  /// Lists the projects that the caller looked at last (PostUserActivity), the latest first.
  Status GetProjectsByUserActivity(const Caller& caller, const v1::GetProjectsByUserActivityRequest& request,
                                   v1::GetProjectsByUserActivityResponse* response);
  Status GetProject(const Caller& caller, const v1::GetProjectRequest& request,
                    v1::GetProjectResponse* response);
  /// Creates a project. Errors: kAlreadyExists; kInvalidArgument; kFailedPrecondition for an archived
  /// workspace.
  Status PostProject(const Caller& caller, const v1::PostProjectRequest& request,
                     v1::PostProjectResponse* response);
  /// Changes name, description or key. Unset fields keep their value. Errors: kNotFound.
  Status PatchProject(const Caller& caller, const v1::PatchProjectRequest& request,
                      v1::PatchProjectResponse* response);
  /// Archives a project: no experiments can be added to it. Idempotent.
  Status ArchiveProject(const Caller& caller, const v1::ProjectActionRequest& request,
                        v1::ProjectActionResponse* response);
  /// Inverse of ArchiveProject. Idempotent.
  Status UnarchiveProject(const Caller& caller, const v1::ProjectActionRequest& request,
                          v1::ProjectActionResponse* response);
  /// Deletes a project with its experiments. See Deletions::start().
  Status DeleteProject(const Caller& caller, const v1::ProjectActionRequest& request,
                       v1::DeleteProjectResponse* response);
  /// Returns a project by its key, e.g. "P7". Errors: kNotFound also for a hidden one.
  Status GetProjectByKey(const Caller& caller, const v1::GetProjectByKeyRequest& request,
                         v1::GetProjectResponse* response);
  /// Lists the columns by which its experiments can be shown, sorted and filtered.
  Status GetProjectColumns(const Caller& caller, const v1::GetProjectColumnsRequest& request,
                           v1::GetProjectColumnsResponse* response);
  /// Lists the range of each numeric metric over the best validations of the experiments.
  Status GetProjectNumericMetricsRange(const Caller& caller,
                                       const v1::GetProjectNumericMetricsRangeRequest& request,
                                       v1::GetProjectNumericMetricsRangeResponse* response);
  /// Appends a note. At most 100 notes of at most 1 MiB. Returns all notes.
  Status AddProjectNote(const Caller& caller, const v1::AddProjectNoteRequest& request,
                        v1::ProjectNotesResponse* response);
  /// Replaces all notes. Returns them.
  Status PutProjectNotes(const Caller& caller, const v1::PutProjectNotesRequest& request,
                         v1::ProjectNotesResponse* response);
  /// Moves a project to another workspace. Errors: kFailedPrecondition for an archived workspace and the
  /// default one.
  Status MoveProject(const Caller& caller, const v1::MoveProjectRequest& request,
                     v1::ProjectActionResponse* response);
  /// Moves an experiment to another project. Errors: kFailedPrecondition if one of the two is archived.
  Status MoveExperiment(const Caller& caller, const v1::MoveExperimentRequest& request,
                        v1::MoveExperimentResponse* response);
  /// Moves experiments to another project, all or none.
  Status MoveExperiments(const Caller& caller, const v1::MoveExperimentsRequest& request,
                         v1::MoveExperimentsResponse* response);

 private:
  Status show_notes(std::int64_t id, v1::ProjectNotesResponse* response) const;
  Status archive(const Caller& caller, const v1::ProjectActionRequest& request, bool archived) const;
  Status post(const v1::PostProjectRequest& request, const Caller& caller, v1::Project* response) const;
  Status patch(const Caller& caller, const v1::PatchProjectRequest& request, v1::Project* response) const;

  Deletions& deletions_;
};

/// Checks the name of a project or workspace: 1 to 80 bytes of UTF-8, no control characters, no spaces at the
/// ends. `what` names the object in the error, kInvalidArgument.
Status check_title(const std::string& name, const std::string& what);
/// kFailedPrecondition for an archived project or workspace. kNotFound.
Status check_open(db::Pool& pool, std::int64_t project);
void to_proto(const db::ProjectRow& row, v1::Project* out);

}  // namespace det::api
