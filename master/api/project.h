// Owns ProjectService: projects, and moving experiments between them.
#pragma once

#include "det/v1/project.grpc.pb.h"
#include "master/api/unary.h"
#include "master/db/queries_workspace.h"

namespace det::api {

class ProjectService final : public v1::ProjectService::CallbackService {
 public:
  explicit ProjectService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetProject(grpc::CallbackServerContext* call,
                                       const v1::GetProjectRequest* request,
                                       v1::GetProjectResponse* response) override;
  grpc::ServerUnaryReactor* PostProject(grpc::CallbackServerContext* call,
                                        const v1::PostProjectRequest* request,
                                        v1::PostProjectResponse* response) override;
  grpc::ServerUnaryReactor* PatchProject(grpc::CallbackServerContext* call,
                                         const v1::PatchProjectRequest* request,
                                         v1::PatchProjectResponse* response) override;
  grpc::ServerUnaryReactor* ArchiveProject(grpc::CallbackServerContext* call,
                                           const v1::ProjectActionRequest* request,
                                           v1::ProjectActionResponse* response) override;
  grpc::ServerUnaryReactor* UnarchiveProject(grpc::CallbackServerContext* call,
                                             const v1::ProjectActionRequest* request,
                                             v1::ProjectActionResponse* response) override;
  grpc::ServerUnaryReactor* DeleteProject(grpc::CallbackServerContext* call,
                                          const v1::ProjectActionRequest* request,
                                          v1::DeleteProjectResponse* response) override;
  grpc::ServerUnaryReactor* GetProjectByKey(grpc::CallbackServerContext* call,
                                            const v1::GetProjectByKeyRequest* request,
                                            v1::GetProjectResponse* response) override;
  grpc::ServerUnaryReactor* GetProjectColumns(grpc::CallbackServerContext* call,
                                              const v1::GetProjectColumnsRequest* request,
                                              v1::GetProjectColumnsResponse* response) override;
  grpc::ServerUnaryReactor* AddProjectNote(grpc::CallbackServerContext* call,
                                           const v1::AddProjectNoteRequest* request,
                                           v1::ProjectNotesResponse* response) override;
  grpc::ServerUnaryReactor* PutProjectNotes(grpc::CallbackServerContext* call,
                                            const v1::PutProjectNotesRequest* request,
                                            v1::ProjectNotesResponse* response) override;
  grpc::ServerUnaryReactor* MoveProject(grpc::CallbackServerContext* call,
                                        const v1::MoveProjectRequest* request,
                                        v1::ProjectActionResponse* response) override;
  grpc::ServerUnaryReactor* MoveExperiment(grpc::CallbackServerContext* call,
                                           const v1::MoveExperimentRequest* request,
                                           v1::MoveExperimentResponse* response) override;
  grpc::ServerUnaryReactor* MoveExperiments(grpc::CallbackServerContext* call,
                                            const v1::MoveExperimentsRequest* request,
                                            v1::MoveExperimentsResponse* response) override;

 private:
  Status show_notes(std::int64_t id, v1::ProjectNotesResponse* response) const;
  Status archive(const v1::ProjectActionRequest& request, bool archived) const;
  Status post(const v1::PostProjectRequest& request, const Caller& caller, v1::Project* response) const;
  Status patch(const v1::PatchProjectRequest& request, v1::Project* response) const;
  const Context& context_;
};

/// A name that people can type and tables can show: 1 to 80 bytes, nothing unseen. kInvalidArgument calls it
/// `what`.
Status check_title(const std::string& name, const std::string& what);
void to_proto(const db::ProjectRow& row, v1::Project* out);

}  // namespace det::api
