#include "master/api/experiments/run.h"

#include "det/v1/run.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/reporter.h"
#include "master/db/queries/trials.h"

namespace det::api {

RunService::RunService(const Context& context) : Service(context, v1::RunService::full_name) {
  unary(v1::RunService::RunPrepareForReporting, &RunService::RunPrepareForReporting);
  unary(v1::RunService::GetRunMetadata, &RunService::GetRunMetadata);
  unary(v1::RunService::PostRunMetadata, &RunService::PostRunMetadata);
  unary(v1::RunService::SearchRuns, &RunService::SearchRuns);
  loop::Workers& bulk = context_.pools.bulk;
  unary(v1::RunService::KillRuns, &RunService::KillRuns, bulk);
  unary(v1::RunService::PauseRuns, &RunService::PauseRuns, bulk);
  unary(v1::RunService::ResumeRuns, &RunService::ResumeRuns, bulk);
  unary(v1::RunService::ArchiveRuns, &RunService::ArchiveRuns, bulk);
  unary(v1::RunService::UnarchiveRuns, &RunService::UnarchiveRuns, bulk);
  unary(v1::RunService::MoveRuns, &RunService::MoveRuns, bulk);
  unary(v1::RunService::DeleteRuns, &RunService::DeleteRuns, context_.pools.removal);
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
  TRY_ASSIGN(const Json given, from_struct(request.metadata(), "metadata"));
  const std::string metadata = dump_json(given);
  TRY(db::check_json_object(metadata));
  TRY(db::set_run_metadata(context_.pool, id, metadata));
  // The whole object is replaced, so the request is the new state.
  *response->mutable_metadata() = request.metadata();
  return {};
}

}  // namespace det::api
