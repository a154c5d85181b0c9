#include "master/api/experiments/run.h"

#include "master/api/convert/convert.h"
#include "master/api/experiments/reporter.h"
#include "master/db/queries/trials.h"

namespace det::api {

RunService::RunService(const Context& context) : Service(context, "det.v1.RunService") {
  unary("RunPrepareForReporting", &RunService::RunPrepareForReporting);
  unary("GetRunMetadata", &RunService::GetRunMetadata);
  unary("PostRunMetadata", &RunService::PostRunMetadata);
  unary("SearchRuns", &RunService::SearchRuns);
  unary("KillRuns", &RunService::KillRuns);
  unary("PauseRuns", &RunService::PauseRuns);
  unary("ResumeRuns", &RunService::ResumeRuns);
  unary("ArchiveRuns", &RunService::ArchiveRuns);
  unary("UnarchiveRuns", &RunService::UnarchiveRuns);
  unary("DeleteRuns", &RunService::DeleteRuns);
  unary("MoveRuns", &RunService::MoveRuns);
}

Status RunService::RunPrepareForReporting(const Caller& caller,
                                          const v1::RunPrepareForReportingRequest& request,
                                          v1::RunPrepareForReportingResponse*) {
  // Checkpoints go to the storage of the experiment's configuration, so there is no storage id to return.
  return admit(context_, caller, {.trial = TrialId(request.run_id())});
}

Status RunService::GetRunMetadata(const Caller& caller, const v1::GetRunMetadataRequest& request,
                                  v1::GetRunMetadataResponse* response) {
  const TrialId id(request.run_id());
  TRY(admit(context_, caller, {.trial = id}));
  TRY_ASSIGN(const std::string metadata, db::get_run_metadata(context_.pool, id));
  json_to_struct(metadata, response->mutable_metadata());
  return {};
}

Status RunService::PostRunMetadata(const Caller& caller, const v1::PostRunMetadataRequest& request,
                                   v1::PostRunMetadataResponse* response) {
  const TrialId id(request.run_id());
  TRY(admit(context_, caller, {.trial = id}));
  const std::string metadata = dump_json(from_struct(request.metadata()));
  TRY(db::check_json_object(metadata));
  TRY(db::set_run_metadata(context_.pool, id, metadata));
  // The whole object is replaced, so the request is the new state.
  *response->mutable_metadata() = request.metadata();
  return {};
}

}  // namespace det::api
