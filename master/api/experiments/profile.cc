// Traces of running trials on request. The request reaches the training process over its session.
#include <algorithm>

#include "master/api/experiments/media.h"
#include "master/db/queries/trials.h"

namespace det::api {
namespace {

constexpr int kMaxProfiledBatches = 1000;

Status check_profile_id(const std::string& id) {
  const bool valid =
      !id.empty() && id.size() <= kMaxProfileId && std::all_of(id.begin(), id.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
      });
  if (valid) return {};
  return fail(Code::kInvalidArgument, "request_id: 1 to 64 letters, digits and hyphens are expected");
}

/// Fills in the path of a stored trace. Returns whether there is one.
Result<bool> find_trace(db::Pool& pool, TrialId trial, const std::string& request_id, v1::TrialProfile& out) {
  TRY_ASSIGN(const auto row, db::find_media_named(pool, trial, "profile/" + request_id));
  if (!row) return false;
  out.set_state(v1::ProfileStatus::STATE_DONE);
  out.set_path(media_path(*row));
  out.set_size(row->size);
  return true;
}

void convert_profile(const v1::ProfileStatus& status, v1::TrialProfile& out) {
  out.set_state(status.state());
  out.set_batches(status.batches());
  out.set_message(status.message());
}

}  // namespace

Status MediaService::ProfileTrial(const Caller&, const v1::ProfileTrialRequest& request,
                                  v1::TrialProfile* response) {
  const TrialId trial(request.trial_id());
  TRY(check_profile_id(request.request_id()));
  if (request.batches() < 1 || request.batches() > kMaxProfiledBatches)
    return fail(Code::kInvalidArgument,
                "batches: 1 to " + std::to_string(kMaxProfiledBatches) + " are expected");
  TRY_ASSIGN(const db::TrialRow row, db::get_trial(context_.pool, trial));
  TRY_ASSIGN(const bool stored, find_trace(context_.pool, trial, request.request_id(), *response));
  if (stored) return {};
  const std::string name = "trial " + std::to_string(trial.value);
  if (core::is_terminal(row.trial.state))
    return fail(Code::kFailedPrecondition, name + " has ended (" +
                                               std::string(core::state_name(row.trial.state)) +
                                               "); only running trials can be traced");
  v1::ProfileBatches batches;
  batches.set_request_id(request.request_id());
  batches.set_batches(request.batches());
  batches.set_record_shapes(request.record_shapes());
  batches.set_profile_memory(request.profile_memory());
  batches.set_with_stack(request.with_stack());
  const auto status = harness_.profile(trial, batches);
  if (!status) return fail(status.error().code, name + " cannot be traced: " + status.error().message);
  convert_profile(*status, *response);
  return {};
}

Status MediaService::GetTrialProfile(const Caller&, const v1::GetTrialProfileRequest& request,
                                     v1::TrialProfile* response) {
  const TrialId trial(request.trial_id());
  TRY(check_profile_id(request.request_id()));
  // The stored trace is looked up last: it may be stored while the process ends.
  const auto status = harness_.profile_status(trial, request.request_id());
  if (!status && status.error().code != Code::kNotFound) return tl::unexpected(status.error());
  if (status) convert_profile(*status, *response);
  if (status && status->state() != v1::ProfileStatus::STATE_DONE) return {};
  TRY_ASSIGN(const bool stored, find_trace(context_.pool, trial, request.request_id(), *response));
  if (stored || status) return {};
  return fail(Code::kNotFound, "trial " + std::to_string(trial.value) + " has no trace " +
                                   request.request_id() + ": " + status.error().message);
}

}  // namespace det::api
