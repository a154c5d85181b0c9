// Owns ProjectService: projects, and moving experiments between them.
#pragma once

#include "det/v1/project.pb.h"
#include "master/api/service.h"
#include "master/db/queries_workspace.h"

namespace det::api {

class ProjectService final : public Service {
 public:
  explicit ProjectService(const Context& context);
  Status GetProject(const Caller& caller, const v1::GetProjectRequest& request,
                    v1::GetProjectResponse* response);
  Status PostProject(const Caller& caller, const v1::PostProjectRequest& request,
                     v1::PostProjectResponse* response);
  Status PatchProject(const Caller& caller, const v1::PatchProjectRequest& request,
                      v1::PatchProjectResponse* response);
  Status ArchiveProject(const Caller& caller, const v1::ProjectActionRequest& request,
                        v1::ProjectActionResponse* response);
  Status UnarchiveProject(const Caller& caller, const v1::ProjectActionRequest& request,
                          v1::ProjectActionResponse* response);
  Status DeleteProject(const Caller& caller, const v1::ProjectActionRequest& request,
                       v1::DeleteProjectResponse* response);
  Status GetProjectByKey(const Caller& caller, const v1::GetProjectByKeyRequest& request,
                         v1::GetProjectResponse* response);
  Status GetProjectColumns(const Caller& caller, const v1::GetProjectColumnsRequest& request,
                           v1::GetProjectColumnsResponse* response);
  Status AddProjectNote(const Caller& caller, const v1::AddProjectNoteRequest& request,
                        v1::ProjectNotesResponse* response);
  Status PutProjectNotes(const Caller& caller, const v1::PutProjectNotesRequest& request,
                         v1::ProjectNotesResponse* response);
  Status MoveProject(const Caller& caller, const v1::MoveProjectRequest& request,
                     v1::ProjectActionResponse* response);
  Status MoveExperiment(const Caller& caller, const v1::MoveExperimentRequest& request,
                        v1::MoveExperimentResponse* response);
  Status MoveExperiments(const Caller& caller, const v1::MoveExperimentsRequest& request,
                         v1::MoveExperimentsResponse* response);

 private:
  Status show_notes(std::int64_t id, v1::ProjectNotesResponse* response) const;
  Status archive(const v1::ProjectActionRequest& request, bool archived) const;
  Status post(const v1::PostProjectRequest& request, const Caller& caller, v1::Project* response) const;
  Status patch(const v1::PatchProjectRequest& request, v1::Project* response) const;
};

/// A name that people can type and tables can show: 1 to 80 bytes, nothing unseen. kInvalidArgument calls it
/// `what`.
Status check_title(const std::string& name, const std::string& what);
void to_proto(const db::ProjectRow& row, v1::Project* out);

}  // namespace det::api
