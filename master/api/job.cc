// Owns the calls of JobService.
#include "master/api/job.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "master/api/convert.h"
#include "master/scheduler/fits.h"

namespace det::api {
namespace {

/// Of an experiment: slots it holds, and slots its trials ask for, held or not.
struct Slots {
  int held = 0, asked = 0;
};

std::map<ExperimentId, Slots> slots_of(const core::Core& core) {
  std::map<ExperimentId, Slots> slots;
  for (const auto& [id, allocation] : core.allocations()) {
    Slots& its = slots[core.trials().at(allocation.trial).experiment];
    its.held += allocation.slot_count();
    its.asked += allocation.slot_count();
  }
  for (const auto& [name, pool] : core.pools()) {
    for (const scheduler::Request& request : pool.snapshot().requests) slots[request.job].asked += request.slots;
  }
  return slots;
}

v1::Job to_job(const core::Core& core, const core::Experiment& experiment, const Slots& slots) {
  v1::Job job;
  job.set_type("TYPE_EXPERIMENT");
  to_proto(experiment.submitted, job.mutable_submission_time());
  job.set_user_id(static_cast<int>(experiment.owner.value));
  job.set_resource_pool(core.pool_of(experiment));
  job.set_is_preemptible(true);
  job.set_priority(experiment.queue.priority);
  job.set_weight(experiment.queue.weight);
  job.set_max_slots(experiment.queue.max_slots.value_or(0));
  job.set_entity_id(std::to_string(experiment.id.value));
  job.set_job_id(experiment.job_id);
  job.set_requested_slots(slots.asked);
  job.set_allocated_slots(slots.held);
  job.set_name(experiment.config->name);
  job.set_progress(experiment.progress);
  job.mutable_summary()->set_state(slots.held > 0 ? v1::Job::Summary::STATE_SCHEDULED : v1::Job::Summary::STATE_QUEUED);
  return job;
}

std::vector<v1::Job> jobs_in_order(const core::Core& core) {
  std::vector<const core::Experiment*> order;
  for (const auto& [id, experiment] : core.experiments()) {
    if (!experiment.unmanaged) order.push_back(&experiment);
  }
  std::sort(order.begin(), order.end(), [&](const core::Experiment* a, const core::Experiment* b) {
    return std::tie(core.pool_of(*a), a->queue.priority, a->queue.position, a->id) <
           std::tie(core.pool_of(*b), b->queue.priority, b->queue.position, b->id);
  });
  const std::map<ExperimentId, Slots> slots = slots_of(core);
  std::vector<v1::Job> jobs;
  std::map<std::string, int> ahead;
  for (const core::Experiment* experiment : order) {
    auto its = slots.find(experiment->id);
    if (its == slots.end()) continue;  // paused: it neither waits nor runs
    v1::Job& job = jobs.emplace_back(to_job(core, *experiment, its->second));
    if (job.summary().state() != v1::Job::Summary::STATE_QUEUED) continue;
    job.mutable_summary()->set_jobs_ahead(ahead[job.resource_pool()]++);
  }
  return jobs;
}

/// The experiment of each id; null where there is none that lives.
Result<std::map<std::string, ExperimentId>> experiments_of(const Context& context) {
  auto found = std::make_shared<std::map<std::string, ExperimentId>>();
  const bool seen = context.loop.inspect([found](const core::Core& core) {
    for (const auto& [id, experiment] : core.experiments()) (*found)[experiment.job_id] = id;
  });
  if (!seen) return fail(Code::kUnavailable, "the master did not answer in time; try again in a moment");
  return std::move(*found);
}

Result<core::UpdateJob> to_input(const v1::QueueControl& control, const std::map<std::string, ExperimentId>& jobs) {
  const auto find = [&](const std::string& job) -> Result<ExperimentId> {
    auto it = jobs.find(job);
    if (it == jobs.end()) return fail(Code::kNotFound, "job " + make_utf8(job) + " has ended or does not exist");
    return it->second;
  };
  core::UpdateJob input;
  TRY_ASSIGN(input.experiment, find(control.job_id()));
  switch (control.action_case()) {
    case v1::QueueControl::kAheadOf:
    case v1::QueueControl::kBehindOf: {
      const bool ahead = control.action_case() == v1::QueueControl::kAheadOf;
      core::UpdateJob::Beside beside{.side = ahead ? scheduler::Side::kAhead : scheduler::Side::kBehind, .anchor = {}};
      TRY_ASSIGN(beside.anchor, find(ahead ? control.ahead_of() : control.behind_of()));
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
      return fail(Code::kInvalidArgument, "job " + control.job_id() +
                                              ": say what to change: priority, weight, max_slots, resource_pool, "
                                              "ahead_of or behind_of");
  }
  return input;
}

/// Only into a pool that is there and could hold its trials.
Status check_pool(const Context& context, const core::UpdateJob& input) {
  if (!input.pool) return {};
  auto problem = std::make_shared<std::string>();
  const bool seen = context.loop.inspect([problem, &context, input](const core::Core& core) {
    const auto experiment = core.experiments().find(input.experiment);
    if (experiment == core.experiments().end()) return;
    const std::vector<scheduler::Agent> agents = core.agents_of(*input.pool);
    if (agents.empty() && *input.pool != context.settings.default_pool) {
      *problem = "no agent is in pool " + make_utf8(*input.pool);
      return;
    }
    const expconf::Resources& resources = experiment->second.config->resources;
    const Status fits = scheduler::fits({scheduler::shape_of(*input.pool, agents)}, *input.pool,
                                        resources.slots_per_trial, resources.is_single_node);
    if (!fits) *problem = fits.error().message;
  });
  if (!seen) return fail(Code::kUnavailable, "the master did not answer in time; try again in a moment");
  return problem->empty() ? Status() : fail(Code::kInvalidArgument, *problem);
}

}  // namespace

Result<std::vector<v1::Job>> JobService::jobs(const Caller& caller) const {
  auto list = std::make_shared<std::vector<v1::Job>>();
  const bool seen = context_.loop.inspect([list](const core::Core& core) { *list = jobs_in_order(core); });
  if (!seen) return fail(Code::kUnavailable, "the master did not answer in time; try again in a moment");
  std::vector<std::int64_t> ids;
  for (const v1::Job& job : *list) ids.push_back(std::stoll(job.entity_id()));
  TRY_ASSIGN(const auto places, db::experiment_places(context_.pool, ids));
  std::vector<v1::Job> seen_jobs;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto place = places.find(ExperimentId(ids[i]));
    if (place == places.end() || caller.grants.in(place->second.workspace) < db::Role::kViewer) continue;
    v1::Job& job = seen_jobs.emplace_back(std::move((*list)[i]));
    job.set_username(place->second.username);
    job.set_workspace_id(static_cast<int>(place->second.workspace));
  }
  return seen_jobs;
}

Result<db::Page<v1::Job>> JobService::page(const Caller& caller, const v1::GetJobsRequest& request,
                                           v1::Pagination* pagination) const {
  TRY_ASSIGN(std::vector<v1::Job> all, jobs(caller));
  std::erase_if(all, [&](const v1::Job& job) {
    const auto& states = request.states();
    const bool state = states.empty() || std::find(states.begin(), states.end(), job.summary().state()) != states.end();
    return !state || (!request.resource_pool().empty() && job.resource_pool() != request.resource_pool());
  });
  if (request.order_by() == v1::ORDER_BY_DESC) std::reverse(all.begin(), all.end());
  const db::Window window = to_window(request.offset(), request.limit(), v1::ORDER_BY_ASC, -1);
  const db::Span span = db::resolve(window, static_cast<std::int64_t>(all.size()));
  db::Page<v1::Job> page{.total = static_cast<std::int64_t>(all.size()), .start = span.first};
  page.rows.assign(std::make_move_iterator(all.begin() + span.first),
                   std::make_move_iterator(all.begin() + span.first + span.count));
  to_pagination(page, window, pagination);
  return page;
}

grpc::ServerUnaryReactor* JobService::GetJobs(grpc::CallbackServerContext* call, const v1::GetJobsRequest* request,
                                              v1::GetJobsResponse* response) {
  return unary(context_, call, request, "/det.v1.JobService/GetJobs", [this, request, response](const Caller& caller) -> Status {
    TRY_ASSIGN(auto found, page(caller, *request, response->mutable_pagination()));
    for (v1::Job& job : found.rows) *response->add_jobs() = std::move(job);
    return {};
  });
}

grpc::ServerUnaryReactor* JobService::GetJobsV2(grpc::CallbackServerContext* call, const v1::GetJobsRequest* request,
                                                v1::GetJobsV2Response* response) {
  return unary(context_, call, request, "/det.v1.JobService/GetJobsV2", [this, request, response](const Caller& caller) -> Status {
    TRY_ASSIGN(auto found, page(caller, *request, response->mutable_pagination()));
    for (v1::Job& job : found.rows) *response->add_jobs()->mutable_full() = std::move(job);
    return {};
  });
}

grpc::ServerUnaryReactor* JobService::GetJobQueueStats(grpc::CallbackServerContext* call,
                                                       const v1::GetJobQueueStatsRequest* request,
                                                       v1::GetJobQueueStatsResponse* response) {
  auto body = [this, request, response](const Caller& caller) -> Status {
    TRY_ASSIGN(const std::vector<v1::Job> all, jobs(caller));
    std::map<std::string, v1::QueueStats> pools;
    for (const std::string& name : request->resource_pools()) pools[name];
    for (const v1::Job& job : all) {
      if (request->resource_pools_size() > 0 && !pools.contains(job.resource_pool())) continue;
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
  };
  return unary(context_, call, request, "/det.v1.JobService/GetJobQueueStats", body);
}

grpc::ServerUnaryReactor* JobService::UpdateJobQueue(grpc::CallbackServerContext* call,
                                                     const v1::UpdateJobQueueRequest* request,
                                                     v1::UpdateJobQueueResponse*) {
  return unary(context_, call, request, "/det.v1.JobService/UpdateJobQueue", [this, request](const Caller& caller) -> Status {
    TRY_ASSIGN(const auto known, experiments_of(context_));
    std::vector<core::UpdateJob> inputs;
    for (const v1::QueueControl& control : request->updates()) {
      TRY_ASSIGN(inputs.emplace_back(), to_input(control, known));
      const core::UpdateJob& input = inputs.back();
      TRY(authorize(caller, Action::kEdit, Target::kExperiment, {std::to_string(input.experiment.value)}, context_.pool));
      if (input.beside) {
        TRY(authorize(caller, Action::kView, Target::kExperiment, {std::to_string(input.beside->anchor.value)},
                      context_.pool));
      }
      TRY(check_pool(context_, inputs.back()));
    }
    for (core::UpdateJob& input : inputs) TRY(context_.loop.ask(std::move(input)));
    return {};
  });
}

}  // namespace det::api
