// Handlers of JobService.
#include "master/api/cluster/job.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "common/base/text.h"
#include "det/v1/job.methods.h"
#include "master/api/accounts/policy.h"
#include "master/api/cluster/binding.h"
#include "master/api/convert/convert.h"
#include "master/api/page.h"
#include "master/api/tasks/command.h"
#include "master/db/queries/experiments.h"
#include "master/scheduler/fits.h"

namespace det::api {
namespace {

constexpr const char* kCommandType = "TYPE_COMMAND";

/// Slots of a job: held ones, and the total it needs including held ones.
struct Slots {
  int held = 0, asked = 0;
  bool runs = false;  ///< holds slots, or is a running command without slots
};

/// Slots of all jobs, summed over the pools. Runs on the core's thread.
std::map<JobKey, Slots> slots_of(const core::Core& core) {
  std::map<JobKey, Slots> slots;
  for (const auto& [name, pool] : core.pools()) {
    for (const auto& [job, standing] : pool.standings()) {
      Slots& its = slots.emplace_hint(slots.end(), job, Slots())->second;
      its.held += standing.held;
      its.asked += standing.held + standing.slots;
      its.runs |= standing.held > 0 || (job.as<CommandId>() && standing.running > 0);
    }
  }
  return slots;
}

/// Copy of a job in a queue, experiment or command.
struct Queued {
  std::string pool;
  core::QueueSettings place;
  JobKey id;
  Slots slots;
  UserId owner;
  WallTime submitted;
  std::string job_id;
  double progress = 0;
  std::shared_ptr<const expconf::CommandConfig> command = nullptr;
  TaskId task = {};
};

v1::Job to_job(const Queued& one) {
  v1::Job job;
  api::to_proto(one.submitted, job.mutable_submission_time());
  job.set_user_id(static_cast<int>(one.owner.value));
  job.set_job_id(one.job_id);
  if (one.command) {
    job.set_type(kCommandType);
    job.set_entity_id(one.task.value);
    job.set_name(command_name(*one.command));
    return job;
  }
  job.set_type("TYPE_EXPERIMENT");
  // Commands run at most once and are never preempted.
  job.set_is_preemptible(true);
  job.set_max_slots(one.place.max_slots.value_or(0));
  job.set_entity_id(std::to_string(one.id.number()));
  job.set_progress(one.progress);
  return job;
}

/// Runs on the core's thread and therefore only copies. Paused experiments have no standing in a pool and are
/// left out.
std::vector<Queued> queued(const core::Core& core) {
  const std::map<JobKey, Slots> slots = slots_of(core);
  std::vector<Queued> found;
  found.reserve(slots.size());
  for (const auto& [id, its] : slots) {
    if (const auto command_id = id.as<CommandId>()) {
      auto known = core.commands().find(*command_id);
      if (known == core.commands().end()) continue;
      const core::Command& command = known->second;
      found.push_back({.pool = core.pool_of(command),
                       .place = command.queue,
                       .id = id,
                       .slots = its,
                       .owner = command.owner,
                       .submitted = command.submitted,
                       .job_id = command.job_id,
                       .command = command.config,
                       .task = command.task});
    } else {
      // Detached experiments do not queue.
      auto known = core.experiments().find(*id.as<ExperimentId>());
      if (known == core.experiments().end() || known->second.detached) continue;
      const core::Experiment& experiment = known->second;
      found.push_back({.pool = core.pool_of(experiment),
                       .place = experiment.queue,
                       .id = id,
                       .slots = its,
                       .owner = experiment.owner,
                       .submitted = experiment.submitted,
                       .job_id = experiment.job_id,
                       .progress = experiment.progress});
    }
  }
  return found;
}

std::vector<v1::Job> in_order(std::vector<Queued> all) {
  std::sort(all.begin(), all.end(), [&](const Queued& a, const Queued& b) {
    return std::tie(a.pool, a.place.priority, a.place.position, a.id) <
           std::tie(b.pool, b.place.priority, b.place.position, b.id);
  });
  std::vector<v1::Job> jobs;
  // Waiting jobs so far, by pool.
  std::map<std::string, int> ahead;
  for (const Queued& one : all) {
    v1::Job& job = jobs.emplace_back(to_job(one));
    job.set_resource_pool(one.pool);
    job.set_priority(one.place.priority);
    job.set_weight(one.place.weight);
    job.set_requested_slots(one.slots.asked);
    job.set_allocated_slots(one.slots.held);
    job.mutable_summary()->set_state(one.slots.runs ? v1::Job::Summary::STATE_SCHEDULED
                                                    : v1::Job::Summary::STATE_QUEUED);
    if (!one.slots.runs) job.mutable_summary()->set_jobs_ahead(ahead[one.pool]++);
  }
  return jobs;
}

/// Copies the fields of a job that do not depend on the rights of the caller.
void limit(const v1::Job& job, v1::LimitedJob* out) {
  *out->mutable_summary() = job.summary();
  out->set_type(job.type());
  out->set_resource_pool(job.resource_pool());
  out->set_is_preemptible(job.is_preemptible());
  out->set_priority(job.priority());
  out->set_weight(job.weight());
  out->set_job_id(job.job_id());
  out->set_requested_slots(job.requested_slots());
  out->set_allocated_slots(job.allocated_slots());
  out->set_progress(job.progress());
  out->set_workspace_id(job.workspace_id());
}

/// Whether a job has the state and the pool that a request asks for.
template <typename Job>
bool matches(const v1::GetJobsRequest& request, const Job& job) {
  const auto& states = request.states();
  const bool state =
      states.empty() || std::find(states.begin(), states.end(), job.summary().state()) != states.end();
  return state && (request.resource_pool().empty() || job.resource_pool() == request.resource_pool());
}

/// A live job. `entity` is the id that rights are checked for.
struct NamedJob {
  JobKey id;
  std::string entity;
};
using Jobs = std::map<std::string, NamedJob>;

Result<Jobs> named_jobs(const Context& context) {
  // Only copies are made on the core's thread; the map is built here.
  auto found = std::make_shared<std::vector<Jobs::value_type>>();
  TRY(context.loop.inspect([found](const core::Core& core) {
    found->reserve(core.experiments().size() + core.commands().size());
    for (const auto& [id, experiment] : core.experiments())
      found->emplace_back(experiment.job_id, NamedJob{id, std::to_string(id.value)});
    for (const auto& [id, command] : core.commands())
      found->emplace_back(command.job_id, NamedJob{id, command.task.value});
  }));
  return Jobs(std::make_move_iterator(found->begin()), std::make_move_iterator(found->end()));
}

/// Checks kView or kEdit. A change of a command needs kRunTasks, as SetCommandPriority does.
Status authorize_job(const Context& context, const Caller& caller, Action action, const NamedJob& job) {
  const bool command = job.id.as<CommandId>().has_value();
  if (command && action == Action::kEdit) action = Action::kRunTasks;
  return authorize(caller, action, command ? Target::kTask : Target::kExperiment, {job.entity}, context.pool);
}

Result<core::UpdateJob> to_input(const Context& context, const Caller& caller,
                                 const v1::QueueControl& control, const Jobs& jobs) {
  // The anchor of a move only needs to be visible to the caller.
  const auto find = [&](const std::string& job, Action action) -> Result<JobKey> {
    auto it = jobs.find(job);
    if (it == jobs.end())
      return fail(Code::kNotFound, "job " + make_utf8(job) + " has ended or does not exist");
    TRY(authorize_job(context, caller, action, it->second));
    return it->second.id;
  };
  core::UpdateJob input;
  TRY_ASSIGN(input.job, find(control.job_id(), Action::kEdit));
  switch (control.action_case()) {
    case v1::QueueControl::kAheadOf:
    case v1::QueueControl::kBehindOf: {
      const bool ahead = control.action_case() == v1::QueueControl::kAheadOf;
      core::UpdateJob::Beside beside{.side = ahead ? scheduler::Side::kAhead : scheduler::Side::kBehind,
                                     .anchor = {}};
      TRY_ASSIGN(beside.anchor, find(ahead ? control.ahead_of() : control.behind_of(), Action::kView));
      input.beside = beside;
      break;
    }
    case v1::QueueControl::kResourcePool:
      input.pool = control.resource_pool();
      break;
    case v1::QueueControl::kPriority:
      input.priority = control.priority();
      break;
    case v1::QueueControl::kWeight:
      input.weight = control.weight();
      break;
    case v1::QueueControl::kMaxSlots:
      input.max_slots = control.max_slots();
      break;
    case v1::QueueControl::ACTION_NOT_SET:
      return fail(Code::kInvalidArgument,
                  "job " + control.job_id() +
                      ": say what to change: priority, weight, max_slots, resource_pool, "
                      "ahead_of or behind_of");
  }
  return input;
}

/// Returns the workspace of a job; nothing for one that has ended.
Result<std::optional<std::int64_t>> workspace_of_job(const Context& context, JobKey job) {
  if (const auto experiment = job.as<ExperimentId>()) {
    TRY_ASSIGN(const auto workspaces,
               db::workspaces_of(context.pool, db::Placed::kExperiment, {std::to_string(experiment->value)}));
    return workspaces.front();
  }
  // The workspace of a command is only known to the core while it lives.
  auto workspace = std::make_shared<std::optional<std::int64_t>>();
  TRY(context.loop.inspect([workspace, job](const core::Core& core) {
    const auto found = core.commands().find(*job.as<CommandId>());
    if (found != core.commands().end()) *workspace = found->second.workspace;
  }));
  return *workspace;
}

/// Returns the config policies that limit a job: those of the cluster and of its workspace.
Result<expconf::Policies> limits_of_job(const Context& context, JobKey job) {
  TRY_ASSIGN(const auto workspace, workspace_of_job(context, job));
  const bool experiment = job.as<ExperimentId>().has_value();
  return limits_of(context.pool, experiment ? expconf::Workload::kExperiment : expconf::Workload::kTask,
                   workspace);
}

/// Checks a change against the limits of config policies.
Status check_limits(const Context& context, const core::UpdateJob& input) {
  if (!input.priority && !input.max_slots && !input.beside) return {};
  TRY_ASSIGN(const expconf::Policies limits, limits_of_job(context, input.job));
  if (input.max_slots && limits.max_slots &&
      // 0 means no limit, which is more than any limit.
      (*input.max_slots == 0 || *input.max_slots > limits.max_slots->value)) {
    return fail(Code::kInvalidArgument,
                "max_slots must be at most " + std::to_string(limits.max_slots->value) +
                    ", the limit set by " + limits.max_slots->set_by + ", not " +
                    (*input.max_slots == 0 ? "0 (no limit)" : std::to_string(*input.max_slots)));
  }
  // A job that moves next to another one takes over its priority.
  std::optional<int> priority = input.priority;
  if (input.beside) {
    auto its = std::make_shared<std::optional<int>>();
    TRY(context.loop.inspect([its, anchor = input.beside->anchor](const core::Core& core) {
      if (const auto command = anchor.as<CommandId>()) {
        const auto found = core.commands().find(*command);
        if (found != core.commands().end()) *its = found->second.queue.priority;
      } else {
        const auto found = core.experiments().find(*anchor.as<ExperimentId>());
        if (found != core.experiments().end()) *its = found->second.queue.priority;
      }
    }));
    priority = *its;
  }
  if (!priority || !limits.priority_limit || *priority >= limits.priority_limit->value) return {};
  return fail(Code::kInvalidArgument,
              "priority must be at least " + std::to_string(limits.priority_limit->value) +
                  " (smaller goes first), the limit set by " + limits.priority_limit->set_by + ", not " +
                  std::to_string(*priority) +
                  (input.beside ? ", that of the job it would stand beside" : ""));
}

/// Checks that the new pool exists and could hold the job's allocations.
Status check_pool(const Context& context, const core::UpdateJob& input) {
  if (!input.pool) return {};
  TRY_ASSIGN(const auto workspace, workspace_of_job(context, input.job));
  if (workspace) TRY(check_pool_open(context, *input.pool, *workspace));
  auto problem = std::make_shared<std::string>();
  TRY(context.loop.inspect([problem, &context, input](const core::Core& core) {
    int slots = 0;
    bool single_node = true;
    if (const auto id = input.job.as<CommandId>()) {
      const auto command = core.commands().find(*id);
      if (command == core.commands().end()) return;
      slots = command->second.config->slots;
    } else {
      const auto experiment = core.experiments().find(*input.job.as<ExperimentId>());
      if (experiment == core.experiments().end()) return;
      slots = experiment->second.config->resources.slots_per_trial;
      single_node = experiment->second.config->resources.is_single_node;
    }
    const scheduler::PoolShape shape = core.shape_of(*input.pool);
    // The default pool always exists, even without agents.
    if (shape.agents.empty() && *input.pool != context.settings.default_pool) {
      *problem = "no agent is in pool " + make_utf8(*input.pool);
      return;
    }
    const Status fits = scheduler::fits({shape}, *input.pool, slots, single_node);
    if (!fits) *problem = fits.error().message;
  }));
  return problem->empty() ? Status() : fail(Code::kInvalidArgument, *problem);
}

}  // namespace

Status check_job_update(const Context& context, const core::UpdateJob& input) {
  TRY(check_limits(context, input));
  return check_pool(context, input);
}

JobService::JobService(const Context& context) : Service(context, v1::JobService::full_name) {
  unary(v1::JobService::GetJobs, &JobService::GetJobs);
  unary(v1::JobService::GetJobsV2, &JobService::GetJobsV2);
  unary(v1::JobService::GetJobQueueStats, &JobService::GetJobQueueStats);
  unary(v1::JobService::UpdateJobQueue, &JobService::UpdateJobQueue);
}

Result<std::vector<v1::JobView>> JobService::jobs(const Caller& caller) const {
  auto found = std::make_shared<std::vector<Queued>>();
  TRY(context_.loop.inspect([found](const core::Core& core) { *found = queued(core); }));
  std::vector<v1::Job> list = in_order(std::move(*found));
  std::vector<std::int64_t> experiments;
  std::vector<std::string> commands;
  for (const v1::Job& job : list) {
    if (job.type() == kCommandType) {
      commands.push_back(job.entity_id());
    } else {
      experiments.push_back(std::stoll(job.entity_id()));
    }
  }
  // Visibility is decided by the workspace, which is stored in the database, as are the names of experiments.
  TRY_ASSIGN(const auto places, db::job_places(context_.pool, experiments, commands));
  std::vector<v1::JobView> shown;
  for (v1::Job& job : list) {
    const auto place = places.find(job.entity_id());
    if (place == places.end()) continue;
    if (job.type() != kCommandType) job.set_name(place->second.experiment_name);
    job.set_username(place->second.username);
    job.set_workspace_id(static_cast<int>(place->second.workspace));
    v1::JobView& view = shown.emplace_back();
    if (caller.grants.in(place->second.workspace) >= db::Role::kViewer)
      *view.mutable_full() = std::move(job);
    else
      limit(job, view.mutable_limited());
  }
  return shown;
}

Status JobService::GetJobs(const Caller& caller, const v1::GetJobsRequest& request,
                           v1::GetJobsResponse* response) {
  TRY_ASSIGN(auto views, jobs(caller));
  std::vector<v1::Job> found;
  for (v1::JobView& view : views)
    if (view.has_full() && matches(request, view.full())) found.push_back(std::move(*view.mutable_full()));
  if (request.order_by() == v1::ORDER_BY_DESC) std::reverse(found.begin(), found.end());
  for (v1::Job& job : page_of(std::move(found), request, response->mutable_pagination()))
    *response->add_jobs() = std::move(job);
  return {};
}

Status JobService::GetJobsV2(const Caller& caller, const v1::GetJobsRequest& request,
                             v1::GetJobsV2Response* response) {
  TRY_ASSIGN(auto views, jobs(caller));
  std::erase_if(views, [&](const v1::JobView& view) {
    return view.has_full() ? !matches(request, view.full()) : !matches(request, view.limited());
  });
  if (request.order_by() == v1::ORDER_BY_DESC) std::reverse(views.begin(), views.end());
  for (v1::JobView& view : page_of(std::move(views), request, response->mutable_pagination()))
    *response->add_jobs() = std::move(view);
  return {};
}

Status JobService::GetJobQueueStats(const Caller& caller, const v1::GetJobQueueStatsRequest& request,
                                    v1::GetJobQueueStatsResponse* response) {
  TRY_ASSIGN(const std::vector<v1::JobView> views, jobs(caller));
  std::map<std::string, v1::QueueStats> pools;
  // Requested pools appear even when they are empty.
  for (const std::string& name : request.resource_pools()) pools[name];
  for (const v1::JobView& view : views) {
    if (!view.has_full()) continue;
    const v1::Job& job = view.full();
    if (request.resource_pools_size() > 0 && !pools.contains(job.resource_pool())) continue;
    v1::QueueStats& stats = pools[job.resource_pool()];
    if (job.summary().state() == v1::Job::Summary::STATE_QUEUED) {
      stats.set_queued_count(stats.queued_count() + 1);
    } else {
      stats.set_scheduled_count(stats.scheduled_count() + 1);
    }
  }
  for (const auto& [name, stats] : pools) {
    v1::PoolQueueStats* out = response->add_results();
    out->set_resource_pool(name);
    *out->mutable_stats() = stats;
  }
  return {};
}

Status JobService::UpdateJobQueue(const Caller& caller, const v1::UpdateJobQueueRequest& request,
                                  v1::UpdateJobQueueResponse*) {
  TRY_ASSIGN(const Jobs known, named_jobs(context_));
  // All updates are checked before the first one is applied.
  std::vector<core::UpdateJob> inputs;
  for (const v1::QueueControl& control : request.updates()) {
    TRY_ASSIGN(inputs.emplace_back(), to_input(context_, caller, control, known));
    TRY(check_job_update(context_, inputs.back()));
  }
  for (core::UpdateJob& input : inputs) TRY(context_.loop.ask(std::move(input)));
  return {};
}

}  // namespace det::api
