// The frame of a step: dispatch, settle, flush; scheduling and timers.
#include "master/core/core.h"

#include <algorithm>

#include "master/core/impl.h"

namespace det::core {
namespace {

/// Idempotency keys of ended experiments that are kept. They only bridge the time until the store returns
/// them.
constexpr std::size_t kEndedRequests = 4096;

}  // namespace

Core::Core(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;
Core::~Core() = default;

Result<Core> Core::restore(const Options& options, Recovered recovered, Now now) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->now = now;
  TRY(impl->restore(std::move(recovered)));
  return Core(std::move(impl));
}

void Core::step(const Input& input, Now now, Effects& out) {
  impl_->begin(now, out);
  std::visit([this](const auto& value) { impl_->handle(value); }, input);
  impl_->settle();
  impl_->flush();
}

void Core::schedule(Now now, Effects& out) {
  if (impl_->dirty.empty()) return;
  // A decision may dirty its pool again (a preemption marks its victim as leaving); the scheduler has applied
  // its own decision already, and the next call finds nothing more to do.
  impl_->begin(now, out);
  for (const std::string& pool : std::exchange(impl_->dirty, {})) impl_->schedule_pool(pool);
  impl_->settle();
  impl_->flush();
}

std::optional<MonoTime> Core::next_deadline() const { return impl_->timers.next(); }

const std::map<ExperimentId, Experiment>& Core::experiments() const { return impl_->experiments; }
const std::unordered_map<TrialId, Trial>& Core::trials() const { return impl_->trials; }
const std::map<CommandId, Command>& Core::commands() const { return impl_->commands; }
const std::unordered_map<AllocationId, Allocation>& Core::allocations() const { return impl_->allocations; }
const std::map<AgentId, Agent>& Core::agents() const { return impl_->agents; }
const std::map<std::string, scheduler::Scheduler>& Core::pools() const { return impl_->pools; }
const std::map<AgentId, AgentSettings>& Core::agent_settings() const { return impl_->agent_settings; }
std::vector<scheduler::Agent> Core::agents_of(const std::string& pool) const {
  std::vector<scheduler::Agent> found;
  for (const auto& [id, agent] : impl_->agents) {
    if (agent.pool == pool) found.push_back(impl_->to_scheduler(agent));
  }
  return found;
}
const std::string& Core::pool_of(const Experiment& experiment) const { return impl_->pool_of(experiment); }
const std::string& Core::pool_of(const Command& command) const { return impl_->pool_of(command); }
const searcher::Searcher* Core::searcher(ExperimentId id) const {
  auto it = impl_->searches.find(id);
  return it == impl_->searches.end() ? nullptr : &it->second.searcher;
}

void Core::Impl::begin(Now when, Effects& effects) {
  now = when;
  out = &effects;
}

void Core::Impl::settle() {
  // The actions of one event may end trials, which queues further events.
  while (!events.empty()) {
    auto [experiment, event] = std::move(events.front());
    events.pop_front();
    take(experiment, event);
  }
  // Every event and every action of a user touches its experiment, so only touched experiments can be done.
  for (ExperimentId id : std::set<ExperimentId>(touched_experiments)) end_if_done(id);
}

void Core::Impl::flush() {
  // One reallocation at most; a batch of steps shares the vector, hence the geometric growth.
  auto& writes = out->writes;
  const std::size_t wanted = writes.size() + touched_experiments.size() + touched_trials.size() +
                             touched_commands.size() + touched_allocations.size() + inserts.size();
  if (wanted > writes.capacity()) writes.reserve(std::max(wanted, 2 * writes.size()));
  // Rows are in the order of their references: experiments, trials, commands, allocations, then the inserts,
  // which refer to all of them.
  for (ExperimentId id : std::exchange(touched_experiments, {})) {
    auto fresh = fresh_experiments.find(id);
    writes.push_back(fresh == fresh_experiments.end()
                         ? PutExperiment{experiments.at(id)}
                         : PutExperiment{experiments.at(id), true, std::move(fresh->second)});
  }
  for (TrialId id : std::exchange(touched_trials, {})) writes.push_back(PutTrial{trials.at(id)});
  for (CommandId id : touched_commands) writes.push_back(PutCommand{commands.at(id)});
  for (const Allocation* allocation : std::exchange(touched_allocations, {})) {
    // The last row of an allocation takes the object out of memory.
    if (allocation->state == AllocationState::kTerminated) {
      writes.push_back(PutAllocation{std::move(allocations.extract(allocation->id).mapped())});
    } else {
      writes.push_back(PutAllocation{*allocation});
    }
  }
  std::move(inserts.begin(), inserts.end(), std::back_inserter(writes));
  inserts.clear();
  if (!late.empty()) inserts.swap(late);
  // An ended experiment leaves memory only after its rows have been built.
  for (ExperimentId id : std::exchange(ended_experiments, {})) {
    const Experiment& experiment = experiments.at(id);
    if (auto known = ended_again.find(id); known != ended_again.end())
      known->second = experiment.searcher_events;
    ended_requests.push_back(experiment.request_id);
    forget(id);
  }
  for (; ended_requests.size() > kEndedRequests; ended_requests.pop_front())
    requests.erase(ended_requests.front());
  for (CommandId id : std::exchange(touched_commands, {})) forget_if_ended(id);
  fresh_experiments.clear();
  out = nullptr;
}

void Core::Impl::forget(ExperimentId id) {
  pool(pool_of(experiments.at(id))).remove_job(id);
  for (TrialId trial : searches.at(id).trials) trials.erase(trial);
  searches.erase(id);
  experiments.erase(id);
}

void Core::Impl::reply(ReplyTo to, Result<ReplyValue> value) {
  if (to != 0) out->replies.push_back({to, std::move(value)});
}

void Core::Impl::log(const TaskId& task, RunNumber run, std::string text, std::string level) {
  inserts.push_back(AppendTaskLog{task, AllocationId(task.value + "." + std::to_string(run)),
                                  std::move(level), std::move(text), now.wall});
}

void Core::Impl::log(const Trial& trial, RunNumber run, std::string text, std::string level) {
  log(trial.task, run, std::move(text), std::move(level));
}

void Core::Impl::log(const Allocation& allocation, std::string text, std::string level) {
  const TaskId& task = is_command(allocation.trial) ? commands.at(command_of(allocation.trial)).task
                                                    : trials.at(allocation.trial).task;
  log(task, allocation.run, std::move(text), std::move(level));
}

void Core::Impl::handle(const Tick&) {
  // Each handler clears or moves its timer, otherwise it would be due again at once. An earlier timer of the
  // same tick may have ended an allocation.
  for (const auto& [kind, id] : timers.due(now.mono)) {
    if (kind == TimerKind::kAgent) {
      lose(agents.at(AgentId(id)));
    } else if (kind == TimerKind::kTrial) {
      give_up(trials.at(TrialId(std::stoll(id))));
    } else if (kind == TimerKind::kRetry) {
      retry(TrialId(std::stoll(id)));
    } else if (auto it = allocations.find(AllocationId(id));
               it != allocations.end() && it->second.state != AllocationState::kTerminated) {
      look_at_deadlines(it->second);
    }
  }
}

}  // namespace det::core
