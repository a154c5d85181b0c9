// The frame of a step: dispatch, settle, finish; scheduling and timers.
#include "master/core/core.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "master/core/owners.h"

namespace det::core {
namespace {

/// Returns the first owner that handles inputs of this type.
template <typename T, typename Owner, typename... Others>
auto& handler_of([[maybe_unused]] const T& input, Owner& owner, [[maybe_unused]] Others&... others) {
  if constexpr (requires(Step & step) { owner.handle(step, input); }) {
    return owner;
  } else {
    return handler_of(input, others...);
  }
}

/// Makes room for `more` elements: one reallocation at most. A batch of steps shares the vector, hence the
/// geometric growth.
template <typename T>
void make_room(std::vector<T>& elements, std::size_t more) {
  const std::size_t wanted = elements.size() + more;
  if (wanted > elements.capacity()) elements.reserve(std::max(wanted, 2 * elements.size()));
}

}  // namespace

struct Core::Impl {
  explicit Impl(const Options& options) : owners(options) {}

  /// Calls the handler of an input, and replies with its result.
  void dispatch(const Input& input);
  /// Carries out the decision of a pool.
  void schedule(const std::string& pool);
  /// Handles expired deadlines.
  void tick();
  /// Delivers searcher events, appends the rows of all touched objects and removes ended objects from memory.
  void finish();

  Owners owners;
  Step step;
};

Core::Core(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;
Core::~Core() = default;

Result<Core> Core::restore(const Options& options, Recovered recovered, Now now) {
  auto impl = std::make_unique<Impl>(options);
  impl->step.now = now;
  TRY(core::restore(impl->owners, impl->step, std::move(recovered)));
  return Core(std::move(impl));
}

void Core::step(const Input& input, Now now, Effects& out) {
  impl_->step.now = now;
  impl_->step.out = &out;
  impl_->dispatch(input);
  impl_->finish();
}

void Core::schedule(Now now, Effects& out) {
  if (!impl_->owners.queues.is_dirty()) return;
  // A decision may dirty its pool again (a preemption marks its victim as terminating); the scheduler has
  // applied its own decision already, and the next call finds nothing more to do.
  impl_->step.now = now;
  impl_->step.out = &out;
  for (const std::string& pool : impl_->owners.queues.take_dirty()) impl_->schedule(pool);
  impl_->finish();
}

std::optional<MonoTime> Core::next_deadline() const { return impl_->owners.timers.next(); }

const std::unordered_map<ExperimentId, Experiment>& Core::experiments() const {
  return impl_->owners.experiments.all();
}
const std::unordered_map<TrialId, Trial>& Core::trials() const { return impl_->owners.trials.all(); }
const std::map<CommandId, Command>& Core::commands() const { return impl_->owners.commands.all(); }
const Trial* Core::trial(TaskKey task) const { return impl_->owners.trials.find(task); }
TrialId Core::builder(ExperimentId id) const { return impl_->owners.builds.builder(id); }
const Command* Core::command(TaskKey task) const { return impl_->owners.commands.find(task); }
const std::unordered_map<AllocationId, Allocation>& Core::allocations() const {
  return impl_->owners.allocations.all();
}
const std::unordered_map<std::string, const Allocation*>& Core::tokens() const {
  return impl_->owners.allocations.by_token();
}
const std::map<AgentId, Agent>& Core::agents() const { return impl_->owners.agents.all(); }
const std::map<std::string, scheduler::Scheduler>& Core::pools() const {
  return impl_->owners.queues.pools();
}
const std::map<AgentId, AgentSettings>& Core::agent_settings() const {
  return impl_->owners.agents.settings();
}
const QuotaTable& Core::quotas() const { return impl_->owners.quotas.all(); }
std::vector<scheduler::Agent> Core::agents_of(const std::string& pool) const {
  std::vector<scheduler::Agent> found;
  for (const auto& [id, agent] : agents()) {
    if (agent.pool == pool) found.push_back(impl_->owners.agents.to_scheduler(agent));
  }
  return found;
}
std::map<std::string, Pilot> Core::pilots() const { return impl_->owners.pilots.all(); }
const std::map<std::string, PilotRules>& Core::providers() const { return impl_->owners.options.providers; }
std::string Core::provider_problem(const std::string& pool) const {
  return impl_->owners.pilots.problem(pool);
}
bool Core::admits(const AgentId& agent) const { return impl_->owners.pilots.admits(agent); }
scheduler::PoolShape Core::shape_of(const std::string& pool) const {
  scheduler::PoolShape shape = scheduler::shape_of(pool, agents_of(pool));
  const auto rules = providers().find(pool);
  if (rules == providers().end()) return shape;
  // Agents of pilots come and go: the largest pilot that may be submitted counts as present.
  const auto nodes = static_cast<std::size_t>(rules->second.max_nodes);
  shape.agents.insert(shape.agents.end(), nodes, rules->second.slots_per_node);
  return shape;
}
const std::string& Core::pool_of(const Experiment& experiment) const {
  return impl_->owners.queues.pool_of(experiment.queue);
}
const std::string& Core::pool_of(const Command& command) const {
  return impl_->owners.queues.pool_of(command.queue);
}
const searcher::Searcher* Core::searcher(ExperimentId id) const {
  return impl_->owners.experiments.searcher(id);
}

void Core::Impl::dispatch(const Input& input) {
  std::visit(
      [&](const auto& value) {
        if constexpr (std::is_same_v<decltype(value), const Tick&>) {
          tick();
        } else {
          auto& owner = handler_of(value, owners.experiments, owners.trials, owners.commands, owners.agents,
                                   owners.jobs, owners.reports, owners.pilots, owners.quotas);
          if constexpr (requires { value.reply; }) {
            Result<ReplyValue> result = owner.handle(step, value);
            if (value.reply != 0) step.out->replies.push_back({value.reply, std::move(result)});
          } else {
            owner.handle(step, value);
          }
        }
      },
      input);
}

void Core::Impl::schedule(const std::string& pool) {
  owners.pilots.close_ending(step.now, pool);
  const scheduler::Plan plan = owners.queues.decide(pool);
  make_room(step.out->sends, plan.start.size() + plan.preempt.size());
  for (const scheduler::Placement& placement : plan.start) {
    if (const auto command = placement.task.as<CommandId>()) {
      owners.commands.start(step, *command, placement.parts);
    } else if (const auto trial = placement.task.as<TrialId>()) {
      owners.trials.start(step, *trial, placement.parts);
    }
  }
  // Starts come first: a trial may be in both lists (Plan::preempt).
  for (const TaskKey id : plan.preempt) {
    if (Allocation* allocation = owners.allocations.of(id)) {
      owners.allocations.preempt(step, *allocation, "its slots go to a more important task");
    }
  }
  owners.pilots.adapt(step, pool);
}

void Core::Impl::tick() {
  // Each handler clears or moves its timer, otherwise it would be due again at once.
  for (const auto& [kind, id] : owners.timers.due(step.now.mono)) {
    switch (kind) {
      case TimerKind::kAgent:
        owners.agents.lose(step, AgentId(id));
        break;
      case TimerKind::kAllocation:
        owners.allocations.on_deadline(step, AllocationId(id));
        break;
      case TimerKind::kTrial:
        owners.trials.expire(step, TrialId(std::stoll(id)));
        break;
      case TimerKind::kRetry:
        owners.trials.retry(step, TrialId(std::stoll(id)));
        break;
      case TimerKind::kPilots:
        // The decision of the pool follows in the same batch, and with it Pilots::adapt.
        owners.timers.set({kind, id}, std::nullopt);
        owners.queues.mark(id);
        break;
    }
  }
}

void Core::Impl::finish() {
  owners.experiments.settle(step);
  std::vector<Write>& writes = step.out->writes;
  make_room(writes, step.experiments.size() + step.trials.size() + step.commands.size() +
                        step.allocations.size() + step.pilots.size() + step.inserts.size());
  // Rows are in the order of their references: experiments, trials, commands, allocations, then the inserts,
  // which refer to all of them.
  for (const Experiment* experiment : step.experiments.sorted()) {
    if (step.submitted && step.submitted->first == experiment->id) {
      writes.emplace_back(PutExperiment{*experiment, true, std::move(step.submitted->second)});
    } else {
      writes.emplace_back(PutExperiment{*experiment});
    }
  }
  for (const Trial* trial : step.trials.sorted()) writes.emplace_back(PutTrial{*trial});
  for (const Command* command : step.commands.sorted()) writes.emplace_back(PutCommand{*command});
  for (const Allocation* allocation : step.allocations.sorted()) {
    // The last row of an allocation takes the object out of memory.
    if (allocation->state == AllocationState::kTerminated) {
      writes.emplace_back(PutAllocation{owners.allocations.extract(allocation->id)});
    } else {
      writes.emplace_back(PutAllocation{*allocation});
    }
  }
  for (const Pilot* pilot : step.pilots.sorted()) writes.emplace_back(PutPilot{*pilot});
  if (step.pilots.size() > 0) owners.pilots.forget_ended();
  step.pilots.clear();
  std::move(step.inserts.begin(), step.inserts.end(), std::back_inserter(writes));
  step.inserts.clear();
  step.experiments.clear();
  step.trials.clear();
  step.allocations.clear();
  step.submitted.reset();
  owners.experiments.forget_ended(step);
  owners.commands.forget_ended(step);
  step.out = nullptr;
}

}  // namespace det::core
