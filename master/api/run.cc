#include "master/api/run.h"

#include "master/api/convert.h"
#include "master/api/reporter.h"
#include "master/db/experiment_changes.h"

namespace det::api {

grpc::ServerUnaryReactor* RunService::RunPrepareForReporting(grpc::CallbackServerContext* call,
                                                             const v1::RunPrepareForReportingRequest* request,
                                                             v1::RunPrepareForReportingResponse*) {
  // No storage id: checkpoints lie where the experiment's configuration says.
  return unary(context_, call, request, "/det.v1.RunService/RunPrepareForReporting",
               [this, request](const Caller& caller) {
                 return admit(context_, caller, {.trial = TrialId(request->run_id())});
               });
}

grpc::ServerUnaryReactor* RunService::GetRunMetadata(grpc::CallbackServerContext* call,
                                                     const v1::GetRunMetadataRequest* request,
                                                     v1::GetRunMetadataResponse* response) {
  return unary(context_, call, request, "/det.v1.RunService/GetRunMetadata",
               [this, request, response](const Caller& caller) -> Status {
                 const TrialId id(request->run_id());
                 TRY(admit(context_, caller, {.trial = id}));
                 TRY_ASSIGN(const std::string metadata, db::get_run_metadata(context_.pool, id));
                 json_to_struct(metadata, response->mutable_metadata());
                 return {};
               });
}

grpc::ServerUnaryReactor* RunService::PostRunMetadata(grpc::CallbackServerContext* call,
                                                      const v1::PostRunMetadataRequest* request,
                                                      v1::PostRunMetadataResponse* response) {
  return unary(context_, call, request, "/det.v1.RunService/PostRunMetadata",
               [this, request, response](const Caller& caller) -> Status {
                 const TrialId id(request->run_id());
                 TRY(admit(context_, caller, {.trial = id}));
                 const std::string metadata = dump_json(from_struct(request->metadata()));
                 TRY(db::check_json_object(metadata));
                 TRY(db::set_run_metadata(context_.pool, id, metadata));
                 *response->mutable_metadata() = request->metadata();
                 return {};
               });
}

}  // namespace det::api
