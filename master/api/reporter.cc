#include "master/api/reporter.h"

#include "base/secret.h"

namespace det::api {
namespace {

bool fits(const Named& named, const core::Allocation& allocation, const core::Trial& trial) {
  return (!named.experiment || *named.experiment == trial.experiment) && (!named.trial || *named.trial == trial.id) &&
         (!named.allocation || *named.allocation == allocation.id);
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
               .invalid_hp = trial.early_exit_invalid_hp,
               .preempt_requested = allocation.preempt_requested};
  const auto experiment = core.experiments().find(trial.experiment);
  if (experiment == core.experiments().end()) return out;
  const expconf::SearcherConfig& searcher = experiment->second.config->searcher;
  out.metric = searcher.metric;
  out.time = searcher.time_name();
  if (searcher.max_time) out.length = static_cast<double>(*searcher.max_time);
  if (searcher.max_length) out.length = static_cast<double>(searcher.max_length->count);
  return out;
}

}  // namespace

Result<Reporter> find_reporter(const Context& context, const Caller& caller, const Named& named) {
  const std::string token = caller.credentials.allocation_token;
  auto candidates = std::make_shared<std::vector<Reporter>>();
  const bool seen = context.loop.inspect([candidates, named](const core::Core& core) {
    const auto take = [&](const core::Allocation& allocation) {
      if (allocation.state == core::AllocationState::kTerminated) return;
      const auto trial = core.trials().find(allocation.trial);
      if (trial == core.trials().end() || !fits(named, allocation, trial->second)) return;
      candidates->push_back(describe(core, allocation, trial->second));
    };
    if (named.allocation) {
      const auto found = core.allocations().find(*named.allocation);
      if (found != core.allocations().end()) take(found->second);
      return;
    }
    if (named.trial) {
      const auto trial = core.trials().find(*named.trial);
      if (trial == core.trials().end()) return;
      const auto& [id, its] = *trial;
      const auto found = core.allocations().find(AllocationId(its.task.value + "." + std::to_string(its.run)));
      if (found != core.allocations().end()) take(found->second);
      return;
    }
    for (const auto& [id, allocation] : core.allocations()) take(allocation);
  });
  if (!seen) return fail(Code::kUnavailable, "the master did not answer in time");
  for (Reporter& one : *candidates) {
    if (!token.empty() && equal_secret(allocation_token(context.settings.cluster_secret, one.allocation), token))
      return std::move(one);
  }
  return fail(Code::kUnauthenticated,
              "the token is not that of a running allocation this call is about (Grpc-Metadata-x-allocation-token)");
}

Status admit(const Context& context, const Caller& caller, const Named& named) {
  if (caller.user.id.value != 0) return {};
  TRY(find_reporter(context, caller, named));
  return {};
}

}  // namespace det::api
