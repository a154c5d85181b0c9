// Handlers that report, change and delete checkpoints. Files are removed from storages that the master can
// reach.
#include <nlohmann/json.hpp>

#include "common/archive/ignore.h"
#include "common/base/text.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/checkpoint.h"
#include "master/api/experiments/reporter.h"
#include "master/api/experiments/trial.h"
#include "master/api/streams/harness_session.h"
#include "master/db/queries/checkpoints.h"
#include "master/db/queries/model_registry.h"
#include "master/gc/collector.h"

namespace det::api {
namespace {

constexpr int kMaxCheckpointsPerCall = 1000;

/// A checkpoint and the configuration of its experiment (JSON).
struct Known {
  db::CheckpointRow row;
  std::string config;
};

/// Checks that no file of the checkpoints is needed. Errors: kFailedPrecondition when one is a version of a
/// registered model, or a trial would start or resume from it.
Status check_unneeded(const Context& context, const std::vector<std::string>& uuids) {
  TRY_ASSIGN(const auto registered, db::registered(context.pool, uuids));
  TRY(db::check_unregistered(registered));
  TRY_ASSIGN(const auto starts, db::start_checkpoints(context.pool));
  for (const std::string& uuid : uuids) {
    if (starts.contains(CheckpointId(uuid))) {
      return fail(Code::kFailedPrecondition,
                  "the trials of an experiment that has not ended start from "
                  "checkpoint " +
                      uuid + "; cancel the experiment first");
    }
    TRY_ASSIGN(const auto trial, db::needed_by(context.pool, CheckpointId(uuid)));
    if (trial) {
      return fail(Code::kFailedPrecondition,
                  "checkpoint " + uuid + " is where trial " + std::to_string(trial->value) + " goes on from");
    }
  }
  return {};
}

/// Loads checkpoints for deletion. Errors: kNotFound; those of check_unneeded().
Result<std::vector<Known>> find_all(const Context& context,
                                    const google::protobuf::RepeatedPtrField<std::string>& uuids) {
  if (uuids.size() > kMaxCheckpointsPerCall)
    return fail(Code::kInvalidArgument,
                "checkpoint_uuids: at most " + std::to_string(kMaxCheckpointsPerCall));
  TRY(check_unneeded(context, {uuids.begin(), uuids.end()}));
  std::vector<Known> found;
  for (const std::string& uuid : uuids) {
    TRY_ASSIGN(db::CheckpointRow row, db::get_checkpoint(context.pool, CheckpointId(uuid)));
    TRY_ASSIGN(const auto experiment, db::get_experiment(context.pool, row.experiment));
    found.push_back({std::move(row), experiment.config});
  }
  return found;
}

/// Removes the files that match `rules` and stores the list of the remaining ones. Files first: a repeat
/// after a failure finds the same list.
Status remove_files(const Context& context, const Known& known, const IgnoreRules& rules) {
  TRY_ASSIGN(const Json resources, parse_json(known.row.resources, {.bytes = 8 << 20, .depth = 4}));
  Json left = Json::object();
  std::vector<std::string> gone;
  for (const auto& [path, size] : resources.items()) {
    if (!path.ends_with('/') && rules.ignored(path, false)) {
      gone.push_back(path);
    } else {
      left[path] = size;
    }
  }
  if (gone.empty()) return {};
  // It may have been registered, or an experiment may start from it, since find_all().
  TRY_ASSIGN(const auto marked, db::mark_for_removal(context.pool, {known.row.uuid}, false));
  if (marked.empty()) {
    TRY(check_unneeded(context, {known.row.uuid.value}));
    return fail(Code::kFailedPrecondition, "checkpoint " + known.row.uuid.value + " was deleted meanwhile");
  }
  TRY_ASSIGN(const auto stored,
             StoredCheckpoint::open(*context.storages->get(), known.config, known.row.uuid));
  TRY(stored.remove(gone));
  return db::set_checkpoint_files(
      context.pool, {known.row.uuid, dump_json(left), left.empty() ? "DELETED" : "PARTIALLY_DELETED"});
}

}  // namespace

Status CheckpointService::ReportCheckpoint(const Caller& caller, const v1::ReportCheckpointRequest& request,
                                           v1::ReportCheckpointResponse*) {
  const v1::Checkpoint& checkpoint = request.checkpoint();
  if (checkpoint.state() != v1::Checkpoint::STATE_UNSPECIFIED &&
      checkpoint.state() != v1::Checkpoint::STATE_COMPLETED)
    return fail(Code::kInvalidArgument, "state: STATE_COMPLETED is what is reported");
  Named named;
  // Core API v2 of Determined AI names the task only.
  if (!checkpoint.allocation_id().empty()) named.allocation = AllocationId(checkpoint.allocation_id());
  if (!checkpoint.task_id().empty()) named.task = TaskId(checkpoint.task_id());
  TRY_ASSIGN(const Reporter reporter, find_reporter(context_, caller, named));
  TRY(context_.quotas->check(core::QuotaResource::kCheckpointBytes, reporter.owner));
  TRY_ASSIGN(const Json metadata, from_struct(checkpoint.metadata(), "metadata"));
  const auto steps = metadata.find("steps_completed");
  if (steps == metadata.end() || !steps->is_number())
    return fail(Code::kInvalidArgument, "metadata: steps_completed is missing");
  v1::CheckpointReport report;
  report.set_uuid(checkpoint.uuid());
  report.set_steps_completed(static_cast<std::int64_t>(steps->get<double>()));
  report.set_metadata(dump_json(metadata));
  *report.mutable_resources() = checkpoint.resources();
  // Reports without a time get the time of arrival.
  const WallTime time = checkpoint.has_report_time() ? from_proto(checkpoint.report_time()) : wall_now();
  TRY_ASSIGN(auto input, read_checkpoint_report(report, reporter.trial, reporter.run, time,
                                                context_.settings.cluster_id));
  TRY(context_.loop.ask(std::move(input)));
  return {};
}

Status HarnessService::FallBack(const Caller& caller, const v1::FallBackRequest& request,
                                v1::FallBackResponse* response) {
  constexpr std::size_t kMaxDamageReason = 1000;
  TRY_ASSIGN(const Reporter reporter,
             find_reporter(context_, caller, {.allocation = AllocationId(request.allocation_id())}));
  const CheckpointId uuid(request.checkpoint_uuid());
  const auto row = db::get_checkpoint(context_.pool, uuid);
  if (!row && row.error().code != Code::kNotFound) return tl::unexpected(row.error());
  // The checkpoint must belong to the trial: a process may not mark others as damaged.
  if (!row || row->trial != reporter.trial) {
    return fail(Code::kInvalidArgument, "checkpoint " + uuid.value + " is not one of trial " +
                                            std::to_string(reporter.trial.value) +
                                            "'s own; nothing stands in for it");
  }
  TRY_ASSIGN(const auto older, db::older_checkpoint(context_.pool, reporter.trial, uuid));
  core::ReportDamage input{.trial = reporter.trial,
                           .run = reporter.run,
                           .uuid = uuid,
                           .reason = make_utf8(request.reason().substr(0, kMaxDamageReason)),
                           .older = std::nullopt};
  if (older) input.older = {older->uuid, older->steps_completed, older->validation};
  TRY_ASSIGN(const auto value, context_.loop.ask(std::move(input)));
  const auto& resume = std::get<core::ResumeFrom>(value);
  response->set_checkpoint_uuid(resume.checkpoint);
  response->set_steps_completed(resume.steps_completed);
  return {};
}

Status CheckpointService::PatchCheckpoints(const Caller& caller, const v1::PatchCheckpointsRequest& request,
                                           v1::PatchCheckpointsResponse*) {
  if (request.checkpoints_size() > kMaxCheckpointsPerCall)
    return fail(Code::kInvalidArgument, "checkpoints: at most " + std::to_string(kMaxCheckpointsPerCall));
  std::vector<std::string> uuids;
  for (const v1::PatchCheckpoint& patch : request.checkpoints()) uuids.push_back(patch.uuid());
  TRY(authorize(caller, Action::kEdit, Target::kCheckpoint, uuids, context_.pool));
  TRY_ASSIGN(const auto registered, db::registered(context_.pool, uuids));
  TRY(db::check_unregistered(registered));
  for (const v1::PatchCheckpoint& patch : request.checkpoints()) {
    TRY_ASSIGN(const auto row, db::get_checkpoint(context_.pool, CheckpointId(patch.uuid())));
    if (!patch.has_resources()) continue;
    const auto& files = patch.resources().resources();
    TRY_ASSIGN(const std::string text, read_checkpoint_files(files));
    if (text != row.resources) TRY(check_unneeded(context_, {patch.uuid()}));
    // An unchanged list keeps its state, e.g. COMPLETED.
    const std::string state = files.empty()           ? "DELETED"
                              : text == row.resources ? row.state
                                                      : "PARTIALLY_DELETED";
    TRY(db::set_checkpoint_files(context_.pool, {row.uuid, text, state}));
  }
  return {};
}

Status CheckpointService::DeleteCheckpoints(const Caller&, const v1::DeleteCheckpointsRequest& request,
                                            v1::DeleteCheckpointsResponse*) {
  TRY_ASSIGN(const auto all, find_all(context_, request.checkpoint_uuids()));
  std::vector<CheckpointId> uuids;
  for (const Known& known : all) uuids.push_back(known.row.uuid);
  // The mark is durable before the first file is removed. The collector repeats a removal that fails.
  TRY_ASSIGN(const auto marked, db::mark_for_removal(context_.pool, uuids));
  return context_.collector->remove(marked);
}

Status CheckpointService::CheckpointsRemoveFiles(const Caller&,
                                                 const v1::CheckpointsRemoveFilesRequest& request,
                                                 v1::CheckpointsRemoveFilesResponse*) {
  IgnoreRules rules;
  for (const std::string& glob : request.checkpoint_globs()) rules.add(glob);
  TRY_ASSIGN(const auto all, find_all(context_, request.checkpoint_uuids()));
  for (const Known& known : all) TRY(remove_files(context_, known, rules));
  return {};
}

Status CheckpointService::PostCheckpointMetadata(const Caller&,
                                                 const v1::PostCheckpointMetadataRequest& request,
                                                 v1::PostCheckpointMetadataResponse* response) {
  const CheckpointId uuid(request.checkpoint().uuid());
  TRY_ASSIGN(const auto before, db::get_checkpoint(context_.pool, uuid));
  TRY_ASSIGN(Json metadata, from_struct(request.checkpoint().metadata(), "metadata"));
  // Resuming depends on this field; users may not change it.
  TRY_ASSIGN(const Json stored, parse_json(before.metadata, {.bytes = 1 << 20, .depth = 64}));
  if (stored.contains("steps_completed")) metadata["steps_completed"] = stored["steps_completed"];
  const std::string text = dump_json(metadata);
  TRY(db::check_json_object(text));
  TRY(db::set_checkpoint_metadata(context_.pool, uuid, text));
  TRY_ASSIGN(const auto row, db::get_checkpoint(context_.pool, uuid));
  TRY_ASSIGN(const auto experiment, db::get_experiment(context_.pool, row.experiment));
  CheckpointConverter(experiment.config).convert(row, response->mutable_checkpoint());
  return {};
}

}  // namespace det::api
