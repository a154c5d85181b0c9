#include "master/api/experiments/detached.h"

#include "common/base/text.h"
#include "det/v1/detached.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/submit/create.h"

namespace det::api {
namespace {

/// Whether a run has been started or has reported anything.
bool has_begun(const core::Trial& trial) {
  return trial.run > 1 || trial.steps_completed > 0 || trial.last_validation >= 0 ||
         !trial.latest_checkpoint.empty();
}

}  // namespace

DetachedService::DetachedService(const Context& context) : Service(context, v1::DetachedService::full_name) {
  unary(v1::DetachedService::PutExperiment, &DetachedService::PutExperiment, context_.pools.submit);
  unary(v1::DetachedService::CreateTrial, &DetachedService::CreateTrial);
  unary(v1::DetachedService::PutTrial, &DetachedService::PutTrial);
  unary(v1::DetachedService::StartTrial, &DetachedService::StartTrial);
  unary(v1::DetachedService::PatchTrial, &DetachedService::PatchTrial);
}

Status DetachedService::PutExperiment(const Caller& caller, const v1::PutExperimentRequest& request,
                                      v1::CreateExperimentResponse* response) {
  // The external id becomes the request id, which makes the call idempotent.
  const std::string& name = request.external_experiment_id();
  if (name.empty() || name.size() > 100 || has_control_characters(name) || find_bad_utf8(name))
    return fail(Code::kInvalidArgument, "external_experiment_id: 1 to 100 bytes, no control characters");
  v1::CreateExperimentRequest create = request.create_experiment_request();
  create.set_detached(true);
  create.set_request_id(std::string(kExternal) + name);
  return create_experiment(context_, caller, create, std::nullopt, response);
}

Status DetachedService::trial_of(const v1::CreateTrialRequest& request, bool again, v1::Trial* out) const {
  TRY_ASSIGN(const auto experiment, db::get_experiment(context_.pool, ExperimentId(request.experiment_id())));
  const std::string name = "experiment " + std::to_string(request.experiment_id());
  if (!experiment.detached)
    return fail(Code::kFailedPrecondition, name + " is the cluster's: its search makes its trials");
  // The searcher creates the trial right after the experiment.
  if (experiment.trials.empty())
    return fail(Code::kUnavailable, name + " has no trial yet; try again in a moment");
  // A detached experiment has a single trial.
  const TrialId id = experiment.trials.front();
  TRY_ASSIGN(const db::TrialRow row, db::get_trial(context_.pool, id));
  if (!again && has_begun(row.trial))
    return fail(Code::kFailedPrecondition,
                name + " has one trial, and it has begun; make another experiment");
  // Replaces the hyperparameters without starting a run.
  if (request.hparams().fields_size() > 0) {
    TRY_ASSIGN(const Json given, from_struct(request.hparams(), "hparams"));
    const std::string hparams = dump_json(given);
    TRY(db::check_json_object(hparams));
    TRY(context_.loop.ask(core::TakeUpTrial{.trial = id, .hparams = hparams, .new_run = false}));
  }
  TRY_ASSIGN(const db::TrialRow now, db::get_trial(context_.pool, id));
  to_proto(now, out);
  return {};
}

Status DetachedService::CreateTrial(const Caller&, const v1::CreateTrialRequest& request,
                                    v1::CreateTrialResponse* response) {
  return trial_of(request, false, response->mutable_trial());
}

Status DetachedService::PutTrial(const Caller&, const v1::PutTrialRequest& request,
                                 v1::CreateTrialResponse* response) {
  return trial_of(request.create_trial_request(), true, response->mutable_trial());
}

Status DetachedService::StartTrial(const Caller&, const v1::StartTrialRequest& request,
                                   v1::StartTrialResponse* response) {
  const TrialId id(request.trial_id());
  TRY_ASSIGN(const db::TrialRow before, db::get_trial(context_.pool, id));
  if (!request.resume() && has_begun(before.trial)) {
    return fail(Code::kFailedPrecondition,
                "trial " + std::to_string(id.value) + " has begun; resume it, or make another experiment");
  }
  TRY(context_.loop.ask(core::TakeUpTrial{.trial = id, .hparams = std::nullopt}));
  TRY_ASSIGN(const db::TrialRow row, db::get_trial(context_.pool, id));
  response->set_trial_run_id(row.trial.run);
  response->set_steps_completed(static_cast<int>(row.trial.latest_steps));
  if (!row.trial.latest_checkpoint.empty()) response->set_latest_checkpoint(row.trial.latest_checkpoint);
  return {};
}

Status DetachedService::patch(const v1::PatchTrialRequest& request, v1::Trial* out) const {
  const TrialId id(request.trial_id());
  TRY_ASSIGN(const db::TrialRow before, db::get_trial(context_.pool, id));
  const auto state = from_proto(request.state());
  if (request.has_state() && !state)
    return fail(Code::kInvalidArgument, "state: STATE_RUNNING, or how it has ended");
  if (state && core::is_terminal(*state)) {
    // A repeated end is a success. A different one is refused by the core.
    const bool repeated = before.trial.state == *state;
    if (!repeated)
      TRY(context_.loop.ask(
          core::EndTrial{.trial = id, .run = before.trial.run, .end = *state, .message = ""}));
  } else {
    // Any other state counts as a sign of life.
    TRY(context_.loop.ask(core::HarnessAlive{.trial = id, .run = before.trial.run}));
  }
  TRY_ASSIGN(const db::TrialRow row, db::get_trial(context_.pool, id));
  to_proto(row, out);
  return {};
}

Status DetachedService::PatchTrial(const Caller&, const v1::PatchTrialRequest& request,
                                   v1::PatchTrialResponse* response) {
  return patch(request, response->mutable_trial());
}

}  // namespace det::api
