// Handlers of ExplanationService.
#include "master/api/experiments/explanation.h"

#include <algorithm>

#include "common/base/text.h"
#include "det/v1/explanation.methods.h"
#include "master/core/build_id.h"
#include "master/db/queries/allocations.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/trials.h"
#include "master/scheduler/explain.h"

namespace det::api {
namespace {

// Runs of the pool that the estimate of the waiting time is based on.
constexpr int kRecentRuns = 50;

/// Copy of the relevant state of the core. Taken on the core's thread, evaluated on the caller's.
struct Sight {
  std::string pool;                       ///< pool of the waiting request; "": nothing waits
  std::optional<scheduler::Image> image;  ///< scheduler state of that pool
  std::map<CommandId, TaskId> commands;   ///< their public ids
  TaskKey task;                           ///< the waiting trial or command
  std::map<TaskKey, double> progress;     ///< of the trials that hold slots
  int waiting = 0, running = 0;
  std::string pilots;     ///< text about the pilots that the pool waits for
  std::string problems;   ///< text about agents and slots of the pool that are out of service by themselves
  std::string otherwise;  ///< state of the object, if nothing waits
};

std::string number(std::int64_t value) { return std::to_string(value); }

/// Lists the agents and slot counts of an allocation.
std::string where(const core::Allocation& allocation) {
  std::string text;
  for (const core::AllocationPart& part : allocation.parts) {
    text += (text.empty() ? "agent " : ", agent ") + part.agent.value + " (" +
            number(static_cast<int>(part.slots.size())) + (part.slots.size() == 1 ? " slot)" : " slots)");
  }
  return text;
}

const core::Allocation* allocation_of(const core::Core& core, const core::Trial& trial) {
  auto it = core.allocations().find(core::allocation_id(trial.task, trial.run));
  if (it == core.allocations().end())
    it = core.allocations().find(core::build_allocation_id(trial.task, trial.run));
  return it == core.allocations().end() ? nullptr : &it->second;
}

/// Describes the unreachable agent of an allocation. Its slots stay in use until the agent is back or must
/// have ended its processes.
std::string who_is_away(const core::Core& core, const core::Allocation& allocation) {
  for (const core::AllocationPart& part : allocation.parts) {
    auto agent = core.agents().find(part.agent);
    const bool ended = part.state == core::AllocationState::kTerminated;
    if (ended || agent == core.agents().end() || agent->second.session != 0) continue;
    std::string away =
        "; agent " + part.agent.value + " is unreachable: its slots are free again when it reconnects";
    if (!agent->second.lost_at) return away;
    const auto left =
        std::chrono::ceil<std::chrono::seconds>(std::max(*agent->second.lost_at - mono_now(), Duration(0)));
    return away + ", or in " + number(left.count()) + " s, when its lease has ended";
  }
  return "";
}

/// The first allocation of the experiment with an unreachable agent.
std::string who_is_away(const core::Core& core, ExperimentId experiment) {
  for (const auto& [id, allocation] : core.allocations()) {
    const core::Trial* trial = core.trial(allocation.task);
    if (!trial || trial->experiment != experiment) continue;
    if (const std::string away = who_is_away(core, allocation); !away.empty())
      return "; " + name_of(trial->id) + " is on " + where(allocation) + away;
  }
  return "";
}

/// Describes the state of a live trial that does not wait for slots.
std::string what_else(const core::Core& core, const core::Trial& trial) {
  const std::string name = "trial " + number(trial.id.value);
  if (core.experiments().at(trial.experiment).detached) return name + " runs outside the cluster";
  if (const core::Allocation* allocation = allocation_of(core, trial)) {
    if (core::is_build(allocation->id)) return name + " is being built on " + where(*allocation);
    return name +
           (allocation->state == core::AllocationState::kTerminating ? " is terminating on "
                                                                     : " has slots: ") +
           where(*allocation) + who_is_away(core, *allocation);
  }
  // Without an allocation the trial has ended, is paused, is held by its search, or waits for a restart.
  if (core::is_terminal(trial.state))
    return name + " has ended: " + std::string(core::state_name(trial.state));
  if (trial.state == core::State::kPaused) return name + " does not wait: its experiment is paused";
  if (trial.held) return name + " waits at a rung of its search, which may resume it";
  const TrialId builder = core.builder(trial.experiment);
  if (builder != TrialId() && builder != trial.id)
    return name + " waits for the build of its experiment, which is in the log of " + name_of(builder);
  // The first line is the reason; the lines below are output of the process.
  const std::string why = trial.exit_reason.substr(0, trial.exit_reason.find('\n'));
  return name + " runs again after a back-off; its log has the time" +
         (why.empty() ? "" : "; last failure: " + why);
}

/// Describes the pilots of a pool that are not there yet, one line each, and why there are none.
std::string pilot_lines(const core::Core& core, const std::string& pool) {
  std::string text;
  if (!core.providers().contains(pool)) return text;
  int count = 0;
  for (const auto& [name, pilot] : core.pilots()) {
    if (pilot.pool != pool) continue;
    ++count;
    const std::string job = pilot.job.empty() ? "" : " (job " + pilot.job + ")";
    if (pilot.phase == core::PilotPhase::kSubmitted) {
      text += "pilot " + name + " was submitted\n";
    } else if (pilot.phase == core::PilotPhase::kPending) {
      text += "pilot " + name + job + " is pending" +
              (pilot.reason.empty() ? "" : ": " + make_utf8(pilot.reason)) + "\n";
    } else if (pilot.phase == core::PilotPhase::kCanceling) {
      text += "pilot " + name + job + " is being canceled: " + make_utf8(pilot.reason) + "\n";
    }
  }
  const int most = core.providers().at(pool).max_pilots;
  if (count >= most) text += "pool " + pool + " has all of its max_pilots: " + std::to_string(most) + "\n";
  const std::string problem = core.provider_problem(pool);
  return problem.empty() ? text : text + make_utf8(problem) + "\n";
}

/// Describes the agents and slots of a pool that take no work because of a problem, one line each.
std::string problem_lines(const core::Core& core, const std::string& pool) {
  constexpr int kMaxLines = 20;
  std::vector<std::string> lines;
  for (const auto& [id, agent] : core.agents()) {
    if (agent.pool != pool || agent.session == 0) continue;
    if (!agent.problem.empty()) lines.push_back("agent " + id.value + " takes no new work: " + agent.problem);
    for (const auto& [slot, problem] : agent.slot_problems)
      lines.push_back("slot " + number(slot) + " of agent " + id.value + " is out of service: " + problem);
  }
  const int more = static_cast<int>(lines.size()) - kMaxLines;
  if (more > 0) {
    lines.resize(kMaxLines);
    lines.push_back("and " + number(more) + " more agents and slots");
  }
  return lines.empty() ? "" : join(lines, "\n") + "\n";
}

void copy_pool(const core::Core& core, Sight& sight) {
  sight.problems = problem_lines(core, sight.pool);
  sight.pilots = pilot_lines(core, sight.pool);
  sight.image = core.pools().at(sight.pool).image();
  for (const auto& [id, command] : core.commands()) sight.commands[id] = command.task;
  for (const auto& [id, allocation] : core.allocations()) {
    if (const core::Trial* trial = core.trial(allocation.task)) sight.progress[trial->id] = trial->progress;
  }
}

/// Copies the pool of an experiment if its trial `wanted`, or any of its trials, waits.
void look(const core::Core& core, const core::Experiment& experiment, std::optional<TrialId> wanted,
          Sight& sight) {
  for (const auto& [name, pool] : core.pools()) sight.running += pool.standing(experiment.id).running;
  auto pool = core.pools().find(core.pool_of(experiment));
  if (pool == core.pools().end()) return;
  const scheduler::Scheduler::Standing waiting = pool->second.standing(experiment.id);
  sight.waiting = waiting.requests;
  if (waiting.requests == 0 || (wanted && !pool->second.waits(*wanted))) return;
  sight.task = wanted ? TaskKey(*wanted) : waiting.first;
  sight.pool = pool->first;
  copy_pool(core, sight);
}

/// Runs `look` on the core's thread and waits for it. Errors: kUnavailable.
Result<std::shared_ptr<Sight>> see(const Context& context,
                                   const std::function<void(const core::Core&, Sight&)>& look) {
  auto sight = std::make_shared<Sight>();
  TRY(context.loop.inspect([sight, look](const core::Core& core) { look(core, *sight); }));
  return sight;
}

/// Sets the ids of a trial and its experiment, or of a command.
template <typename Message>
void set_ids(const Sight& sight, TaskKey task, JobKey job, Message* out) {
  if (const auto command = task.as<CommandId>()) {
    auto its = sight.commands.find(*command);
    if (its != sight.commands.end()) out->set_command_id(its->second.value);
    return;
  }
  if (task == TaskKey()) return;
  out->set_trial_id(static_cast<int>(task.number()));
  if constexpr (requires { out->set_experiment_id(0); })
    out->set_experiment_id(static_cast<int>(job.number()));
}

void show(const Sight& sight, const scheduler::Blocker& blocker, v1::Explanation::Blocker* out) {
  constexpr const char* kHow[] = {"RUNS", "TERMINATES", "HOLDS"};
  set_ids(sight, blocker.task, blocker.job, out);
  out->set_how(kHow[static_cast<int>(blocker.how)]);
  out->set_slots(blocker.slots);
  for (const AgentId& agent : blocker.agents) out->add_agents(agent.value);
}

void show(const Sight& sight, const scheduler::Suggestion& suggestion, v1::Explanation::Suggestion* out) {
  constexpr const char* kWhat[] = {"SLOTS", "SPREAD", "MAX_SLOTS", "AGENT", "ENDS", "PRIORITY"};
  out->set_what(kWhat[static_cast<int>(suggestion.what)]);
  out->set_value(suggestion.value);
  out->set_agent_id(suggestion.agent.value);
  set_ids(sight, suggestion.task, {}, out);
  // Only trials can be preempted.
  for (const TaskKey task : suggestion.preempts) out->add_preempts(static_cast<int>(task.number()));
}

Status explain(const Context& context, const Sight& sight, v1::Explanation* out) {
  out->set_resource_pool(sight.pool);
  if (sight.pool.empty()) {
    out->set_reason(scheduler::reason_name(scheduler::Reason::kNotWaiting));
    out->set_text(sight.otherwise);
    return {};
  }
  // The estimate needs recent run lengths and the ages of live runs.
  scheduler::RunLengths lengths{.progress = sight.progress};
  TRY_ASSIGN(lengths.recent, db::recent_run_lengths(context.pool, sight.pool, kRecentRuns));
  TRY_ASSIGN(const auto started, db::live_since(context.pool, sight.pool));
  for (const auto& [task, since] : started) {
    lengths.age[task] = static_cast<double>(wall_now().micros - since.micros) / 1e6;
  }
  const scheduler::Explanation found = scheduler::explain(sight.image->snapshot(), sight.task, lengths);
  set_ids(sight, found.task, found.job, out);
  out->set_reason(scheduler::reason_name(found.reason));
  std::map<TaskKey, std::string> names;
  for (const auto& [id, task] : sight.commands) names[id] = "command " + task.value;
  out->set_text(scheduler::to_text(found, names) + sight.problems + sight.pilots);
  out->set_slots(found.slots);
  out->set_position(found.position);
  out->set_queued(found.queued);
  out->set_more_blockers(found.more_blockers);
  for (const scheduler::Blocker& blocker : found.blockers) show(sight, blocker, out->add_blockers());
  for (const scheduler::Suggestion& suggestion : found.suggestions)
    show(sight, suggestion, out->add_suggestions());
  if (!found.estimate) return {};
  out->mutable_estimate()->set_seconds(found.estimate->seconds);
  out->mutable_estimate()->set_median(found.estimate->median);
  out->mutable_estimate()->set_runs(found.estimate->runs);
  return {};
}

std::string ended_as(const std::string& name, core::State state) {
  return name + " has ended: " + std::string(core::state_name(state));
}

}  // namespace

Status explain_command(const Context& context, const core::Command& command, v1::Explanation* out) {
  const std::string its = "command " + command.task.value;
  TRY_ASSIGN(const auto sight, see(context, [id = command.id, its](const core::Core& core, Sight& seen) {
               auto live = core.commands().find(id);
               if (live == core.commands().end()) return;
               const core::Command& now = live->second;
               auto allocation =
                   core.allocations().find(AllocationId(now.task.value + "." + std::to_string(now.run)));
               if (allocation != core.allocations().end()) {
                 const bool terminates = allocation->second.state == core::AllocationState::kTerminating;
                 seen.otherwise = its + (terminates ? " is terminating on " : " has slots: ") +
                                  where(allocation->second) + who_is_away(core, allocation->second);
                 return;
               }
               seen.task = id;
               seen.pool = core.pool_of(live->second);
               copy_pool(core, seen);
             }));
  if (sight->otherwise.empty()) sight->otherwise = ended_as(its, command.state);
  out->set_command_id(command.task.value);
  return explain(context, *sight, out);
}

ExplanationService::ExplanationService(const Context& context)
    : Service(context, v1::ExplanationService::full_name) {
  unary(v1::ExplanationService::ExplainTrial, &ExplanationService::ExplainTrial);
  unary(v1::ExplanationService::ExplainExperiment, &ExplanationService::ExplainExperiment);
}

Status ExplanationService::ExplainTrial(const Caller&, const v1::ExplainTrialRequest& request,
                                        v1::ExplainTrialResponse* response) {
  const TrialId id(request.trial_id());
  TRY_ASSIGN(const auto row, db::get_trial(context_.pool, id));
  TRY_ASSIGN(const auto sight, see(context_, [id](const core::Core& core, Sight& out) {
               auto trial = core.trials().find(id);
               if (trial == core.trials().end()) return;
               look(core, core.experiments().at(trial->second.experiment), id, out);
               if (out.pool.empty()) out.otherwise = what_else(core, trial->second);
             }));
  // The core has dropped an ended trial.
  if (sight->otherwise.empty()) sight->otherwise = ended_as("trial " + number(id.value), row.trial.state);
  response->mutable_explanation()->set_trial_id(static_cast<int>(id.value));
  response->mutable_explanation()->set_experiment_id(static_cast<int>(row.trial.experiment.value));
  return explain(context_, *sight, response->mutable_explanation());
}

Status ExplanationService::ExplainExperiment(const Caller&, const v1::ExplainExperimentRequest& request,
                                             v1::ExplainExperimentResponse* response) {
  const ExperimentId id(request.experiment_id());
  const std::string name = "experiment " + number(id.value);
  TRY_ASSIGN(const auto row, db::get_experiment(context_.pool, id));
  TRY_ASSIGN(const auto sight, see(context_, [id, name](const core::Core& core, Sight& out) {
               auto experiment = core.experiments().find(id);
               if (experiment == core.experiments().end()) return;
               look(core, experiment->second, std::nullopt, out);
               if (!out.pool.empty()) return;
               out.otherwise = name + " is " + std::string(core::state_name(experiment->second.state)) +
                               "; " + number(out.running) + " of its trials run and none waits for slots" +
                               who_is_away(core, id);
             }));
  if (sight->otherwise.empty()) sight->otherwise = ended_as(name, row.state);
  response->set_waiting(sight->waiting);
  response->set_running(sight->running);
  response->mutable_explanation()->set_experiment_id(static_cast<int>(id.value));
  return explain(context_, *sight, response->mutable_explanation());
}

}  // namespace det::api
