#include "master/api/experiments/reporter.h"

#include "common/base/secret.h"

namespace det::api {
namespace {

bool fits(const Named& named, const core::Allocation& allocation, const core::Trial& trial) {
  return (!named.experiment || *named.experiment == trial.experiment) &&
         (!named.trial || *named.trial == trial.id) &&
         (!named.allocation || *named.allocation == allocation.id) &&
         (!named.task || *named.task == trial.task);
}

/// The allocation that a trial outside the cluster would have.
core::Allocation imagined(const core::Trial& trial) {
  core::Allocation allocation;
  allocation.id = AllocationId(trial.task.value + "." + std::to_string(trial.run));
  allocation.task = trial.id;
  allocation.run = trial.run;
  return allocation;
}

Reporter describe(const core::Core& core, const core::Allocation& allocation, const core::Trial& trial) {
  Reporter out{.allocation = allocation.id,
               .trial = trial.id,
               .run = allocation.run,
               .experiment = trial.experiment,
               .task = trial.task,
               .parts = allocation.parts,
               .metric = "",
               .time = "",
               .steps_completed = trial.steps_completed,
               .owner = {},
               .started = trial.started,
               .invalid_hp = trial.early_exit_invalid_hp,
               .preempt_requested = allocation.preempt_requested};
  const auto experiment = core.experiments().find(trial.experiment);
  if (experiment == core.experiments().end()) return out;
  const expconf::SearcherConfig& searcher = experiment->second.config->searcher;
  out.owner = {experiment->second.owner, experiment->second.workspace};
  out.metric = searcher.metric;
  out.time = searcher.time_name();
  if (searcher.max_time) out.length = static_cast<double>(*searcher.max_time);
  if (searcher.max_length) out.length = static_cast<double>(searcher.max_length->count);
  return out;
}

/// Looks up the session of a user. Errors: kUnauthenticated.
Result<db::Session> session_of(const Context& context, const Caller& caller) {
  auto session = context.sessions->find(token_hash(caller.credentials.user_token));
  if (!session && session.error().code == Code::kNotFound)
    return fail(Code::kUnauthenticated, "the session has ended; log in again");
  return session;
}

/// Finds the newest live trial outside the cluster that matches `named` and belongs to the caller.
Result<Reporter> find_outside(const Context& context, const Caller& caller, Named named) {
  TRY_ASSIGN(const auto session, session_of(context, caller));
  if (session.limited)
    return fail(Code::kUnauthenticated, "an access token of a lesser role does not report");
  // Clients of Determined AI have no allocation id there and send the task id instead.
  const std::string task = named.allocation ? named.allocation->value : "";
  named.allocation.reset();
  auto found = std::make_shared<std::optional<Reporter>>();
  TRY(context.loop.inspect([found, named, task, owner = session.user.id](const core::Core& core) {
    for (const auto& [id, trial] : core.trials()) {
      const auto experiment = core.experiments().find(trial.experiment);
      if (experiment == core.experiments().end() || !experiment->second.detached ||
          experiment->second.owner != owner || core::is_terminal(trial.state) ||
          // Trial ids grow, so the newest match wins.
          (*found && id < (*found)->trial))
        continue;
      const core::Allocation allocation = imagined(trial);
      if (fits(named, allocation, trial) &&
          (task.empty() || task == trial.task.value || task == allocation.id.value))
        *found = describe(core, allocation, trial);
    }
  }));
  if (*found) return std::move(**found);
  return fail(Code::kUnauthenticated,
              "only its allocation's token speaks for a trial (Grpc-Metadata-x-allocation-token), and its "
              "owner's for one outside the cluster");
}

}  // namespace

Result<Reporter> find_reporter(const Context& context, const Caller& caller, const Named& named) {
  const std::string token = caller.credentials.allocation_token;
  if (token.empty() && !caller.credentials.user_token.empty()) return find_outside(context, caller, named);
  auto match = std::make_shared<std::optional<Reporter>>();
  TRY(context.loop.inspect([match, named, hash = token_hash(token)](const core::Core& core) {
    const auto found = core.tokens().find(hash);
    if (found == core.tokens().end()) return;
    const core::Trial* const trial = core.trial(found->second->task);
    if (trial && fits(named, *found->second, *trial)) *match = describe(core, *found->second, *trial);
  }));
  if (!token.empty() && *match) return std::move(**match);
  return fail(
      Code::kUnauthenticated,
      "the token is not that of a running allocation this call is about (Grpc-Metadata-x-allocation-token)");
}

Result<Reporter> find_editable(const Context& context, const Caller& caller, TrialId trial) {
  TRY_ASSIGN(const auto session, session_of(context, caller));
  const Caller user{.user = session.user, .grants = session.grants, .limited = session.limited};
  TRY(authorize(user, Action::kEdit, Target::kTrial, {std::to_string(trial.value)}, context.pool));
  auto found = std::make_shared<std::optional<Reporter>>();
  TRY(context.loop.inspect([found, trial](const core::Core& core) {
    const auto at = core.trials().find(trial);
    if (at != core.trials().end() && !core::is_terminal(at->second.state))
      *found = describe(core, imagined(at->second), at->second);
  }));
  if (*found) return std::move(**found);
  return fail(Code::kFailedPrecondition,
              "trial " + std::to_string(trial.value) + " has ended and takes no reports");
}

Status admit(const Context& context, const Caller& caller, const Named& named) {
  if (caller.user.id.value != 0) return {};
  TRY(find_reporter(context, caller, named));
  return {};
}

}  // namespace det::api
