// Life of allocations: assignment, preemption, kill, exit. Slots are free at the exit of the process (or the
// loss of its agent), never before: otherwise two processes could use one device.
#include <algorithm>

#include "master/core/impl.h"
#include "master/core/leaving.h"
#include "master/core/transitions.h"

namespace det::core {
namespace {

/// Time without a connection after which a part on an agent no longer delays the end of a trial or command
/// that a user canceled or killed. Long enough for an agent, or the master, to restart. Together with the
/// three heartbeats (6 s) until an agent counts as disconnected, a kill completes within 15 s.
constexpr Duration kAwayPatience = std::chrono::seconds(8);

/// Ports where gangs meet: from the default of torchrun, below the kernel's ephemeral range.
constexpr int kFirstPort = 29400;
constexpr int kPorts = 2000;

std::string first_line(const Exit& exit) { return exit.message.substr(0, exit.message.find('\n')); }

/// Appends to the first line of an exit message; the lines below are output of the task.
void say_more(Exit& exit, const std::string& more) {
  exit.message.insert(std::min(exit.message.find('\n'), exit.message.size()), more);
}

}  // namespace

Allocation* Core::Impl::live_allocation(TrialId trial) {
  auto it = live.find(trial);
  return it == live.end() ? nullptr : it->second;
}

void Core::Impl::assign(Trial& trial, const std::vector<scheduler::Part>& parts) {
  waiting.erase(trial.id);
  ++trial.run;
  if (trial.run > 1) begin_from_checkpoint(trial);
  touched_trials.insert(trial.id);
  allocate(trial.task, trial.id, trial.run, parts);
}

void Core::Impl::assign(Command& command, const std::vector<scheduler::Part>& parts) {
  waiting.erase(as_trial(command.id));
  allocate(command.task, as_trial(command.id), 1, parts);
}

void Core::Impl::allocate(const TaskId& task, TrialId trial, RunNumber run,
                          const std::vector<scheduler::Part>& parts) {
  // The id is a function of task and run, so it is unique and every component can compute it.
  const AllocationId id(task.value + "." + std::to_string(run));
  Allocation& allocation = allocations[id];
  allocation.id = id;
  allocation.trial = trial;
  allocation.run = run;
  std::vector<const Agent*> hosts;
  std::string where;
  for (const scheduler::Part& part : parts) {
    const Agent& agent = *find_agent(part.agent);
    hosts.push_back(&agent);
    allocation.pool = agent.pool;
    allocation.parts.push_back(
        {.agent = agent.id, .agent_instance = agent.instance, .address = agent.address, .slots = part.slots});
    on_agent[agent.id].insert(id);
    where += (where.empty() ? "agent " : ", agent ") + agent.id.value + " (" +
             std::to_string(part.slots.size()) + (part.slots.size() == 1 ? " slot)" : " slots)");
  }
  allocation.port = port_for(allocation);
  if (allocation.port != 0) ports.insert(allocation.port);
  allocation.started = now.wall;
  live[trial] = &allocation;
  touched_allocations.insert(&allocation);
  const std::string who = is_command(trial) ? "the command" : "trial " + std::to_string(trial.value);
  log(allocation, who + " was assigned to " + where);
  for (std::size_t i = 0; i < parts.size(); ++i) send_start(allocation, allocation.parts[i], *hosts[i]);
}

int Core::Impl::port_for(const Allocation& allocation) const {
  if (allocation.parts.size() < 2) return 0;
  // The port differs from run to run: a foreign process may listen on one, and the next run then avoids it.
  const auto first = static_cast<int>((allocation.trial.value * 7 + allocation.run) % kPorts);
  for (int i = 0; i < kPorts; ++i) {
    const int port = kFirstPort + (first + i) % kPorts;
    if (!ports.contains(port)) return port;
  }
  return kFirstPort + first;
}

void Core::Impl::send_start(const Allocation& allocation, const AllocationPart& part, const Agent& agent) {
  // To a disconnected agent nothing is sent: `reconcile` repeats the start when it reconnects.
  const auto number = static_cast<int>(&part - allocation.parts.data());
  if (agent.session == 0 || (number > 0 && is(Mutant::kGangHalfStarted))) return;
  if (is_command(allocation.trial)) {
    const Command& command = commands.at(command_of(allocation.trial));
    out->sends.push_back(StartAllocation{
        agent.id, agent.session, allocation, number, {}, {}, nullptr, command.code_archive, command});
    return;
  }
  const Trial& trial = trials.at(allocation.trial);
  const Experiment& experiment = experiments.at(trial.experiment);
  out->sends.push_back(StartAllocation{agent.id, agent.session, allocation, number, trial, experiment.id,
                                       searches.at(experiment.id).config, experiment.code_archive,
                                       std::nullopt});
}

void Core::Impl::ask_to_leave(Allocation& allocation, const std::string& why) {
  // Without a session no harness could save a checkpoint. Commands have none either.
  if (is_leaving(allocation)) return;
  if (!allocation.attached) return kill(allocation, why);
  const Trial& trial = trials.at(allocation.trial);
  allocation.preempt_requested = true;
  const Duration patience = std::chrono::seconds(config_of(trial).preemption_timeout);
  // An earlier deadline (ReportInvalidHp) stays.
  const MonoTime deadline = now.mono + patience;
  allocation.preempt_deadline = std::min(allocation.preempt_deadline.value_or(deadline), deadline);
  advance(allocation, AllocationState::kTerminating);
  set_timer(allocation);
  tell_leaving(allocation);
  log(trial, allocation.run, "gracefully terminating: " + why);
  out->sends.push_back(PreemptAllocation{allocation.id});
}

void Core::Impl::kill(Allocation& allocation, const std::string& why) {
  if (allocation.kill_requested || allocation.exit) return;
  allocation.kill_requested = true;
  allocation.preempt_deadline.reset();
  allocation.kill_again = now.mono + options.kill_repeat;
  advance(allocation, AllocationState::kTerminating);
  set_timer(allocation);
  tell_leaving(allocation);
  log(allocation, "forcibly killing: " + why);
  send_kill(allocation);
}

void Core::Impl::send_kill(const Allocation& allocation) {
  for (const AllocationPart& part : allocation.parts) send_kill(allocation, part);
}

void Core::Impl::send_kill(const Allocation& allocation, const AllocationPart& part) {
  if (part.state == AllocationState::kTerminated) return;
  const Agent& agent = *find_agent(part.agent);
  if (agent.session != 0) out->sends.push_back(KillAllocation{agent.id, agent.session, allocation.id});
}

void Core::Impl::advance(Allocation& allocation, AllocationState state) {
  touched_allocations.insert(&allocation);
  if (allocation.state < state) change(allocation.state, state);
}

void Core::Impl::advance(Allocation& allocation, AllocationPart& part, AllocationState state) {
  // An allocation is as far as its least advanced part. kTerminated is left to `finish`.
  if (part.state < state) change(part.state, state);
  auto least = AllocationState::kTerminated;
  for (const AllocationPart& one : allocation.parts) least = std::min(least, one.state);
  if (least < AllocationState::kTerminated) advance(allocation, least);
  touched_allocations.insert(&allocation);
}

void Core::Impl::finish(Allocation& allocation, AllocationPart& part, Exit exit) {
  advance(allocation, part, AllocationState::kTerminated);
  part.exit = std::move(exit);
  auto held = on_agent.find(part.agent);
  held->second.erase(allocation.id);
  if (held->second.empty()) on_agent.erase(held);
  // The first failure of a gang is its cause; the parts that are killed because of it follow.
  const bool gang = allocation.parts.size() > 1;
  const bool counts = part.exit->kind != ExitKind::kSucceeded && !part.daemon;
  if (counts && (!allocation.exit || is(Mutant::kLastExitCounts))) {
    allocation.exit = part.exit;
    if (gang) say_more(*allocation.exit, " (on agent " + part.agent.value + ")");
  }
  excuse(allocation);
  if (is(Mutant::kGangFreedAtFirst)) tell_ended(allocation);
  const bool last =
      std::all_of(allocation.parts.begin(), allocation.parts.end(),
                  [](const AllocationPart& one) { return one.state == AllocationState::kTerminated; });
  if (last) return finish(allocation);
  if (allocation.kill_again || is(Mutant::kGangOutlivesPart)) return;
  if (allocation.exit)
    return end_the_others(allocation,
                          "a part of it ended: " + first_line(*allocation.exit) + "; the others are killed",
                          "ERROR");
  if (only_helpers_live(allocation))
    end_the_others(allocation, "all but its helpers have ended; these are ended too", "INFO");
}

/// When an agent of a gang is lost, the parts on other agents fail first: they lose their peer at once, while
/// the core detects the loss later. Such a failure is not the program's and must not consume a restart.
void Core::Impl::excuse(Allocation& allocation) {
  if (!allocation.exit || allocation.exit->kind != ExitKind::kFailed || is(Mutant::kPeerErrorCounted)) return;
  for (const AllocationPart& part : allocation.parts) {
    const bool lost = part.exit && part.exit->kind == ExitKind::kLost;
    if (!lost && (part.exit || find_agent(part.agent)->session != 0)) continue;
    allocation.exit->kind = ExitKind::kLost;
    say_more(*allocation.exit, ", agent " + part.agent.value + (lost ? " lost it" : " being out of reach"));
    touched_allocations.insert(&allocation);
    return;
  }
}

void Core::Impl::end_the_others(Allocation& allocation, const std::string& why, const std::string& level) {
  allocation.preempt_deadline.reset();
  allocation.kill_again = now.mono + options.kill_repeat;
  advance(allocation, AllocationState::kTerminating);
  set_timer(allocation);
  tell_leaving(allocation);
  log(allocation, why, level);
  send_kill(allocation);
}

void Core::Impl::finish(Allocation& allocation) {
  change(allocation.state, AllocationState::kTerminated);
  // Without a failure the allocation ends like its first part that is not a daemon.
  if (!allocation.exit) {
    const auto counted = std::find_if(allocation.parts.begin(), allocation.parts.end(),
                                      [](const AllocationPart& part) { return !part.daemon; });
    allocation.exit = (counted == allocation.parts.end() ? allocation.parts.begin() : counted)->exit;
  }
  name_exit(allocation);
  allocation.ended = now.wall;
  allocation.preempt_deadline.reset();
  allocation.kill_again.reset();
  set_timer(allocation);
  touched_allocations.insert(&allocation);
  live.erase(allocation.trial);
  ports.erase(allocation.port);
  tell_ended(allocation);
  const ExitKind kind = allocation.exit->kind;
  const bool bad = is_failure(kind) || kind == ExitKind::kLost || kind == ExitKind::kStorageFull;
  // First line only: the output of the task is in the log already.
  log(allocation, "exited: " + first_line(*allocation.exit), bad ? "ERROR" : "INFO");
  if (is_command(allocation.trial)) return decide(commands.at(command_of(allocation.trial)), allocation);
  decide(trials.at(allocation.trial), allocation);
}

void Core::Impl::name_exit(Allocation& allocation) {
  const auto trial = trials.find(allocation.trial);
  if (trial == trials.end()) return;
  Exit& exit = *allocation.exit;
  if (trial->second.early_exit_invalid_hp &&
      (exit.kind == ExitKind::kSucceeded || exit.kind == ExitKind::kFailed)) {
    exit.kind = ExitKind::kInvalidHp;
    exit.message = "the trial says that its hyperparameters are invalid";
  } else if (allocation.preempt_acknowledged && exit.kind == ExitKind::kSucceeded) {
    exit.kind = ExitKind::kPreempted;
    exit.message = "left as it was asked to, its checkpoint saved";
  }
}

std::optional<MonoTime> Core::Impl::abandoned_at(const Allocation& allocation) const {
  if (!is_leaving(allocation)) return std::nullopt;
  // Only a cancel or a kill by a user justifies an end without the exit. Preempted trials wait for the agent:
  // they could otherwise start elsewhere while their process still runs.
  const TrialId id = allocation.trial;
  const State state = is_command(id) ? commands.at(command_of(id)).state : trials.at(id).state;
  if (state != State::kStoppingCanceled && state != State::kStoppingKilled) return std::nullopt;
  std::optional<MonoTime> first;
  for (const AllocationPart& part : allocation.parts) {
    // A part that has ended may have outlived its agent.
    if (part.state == AllocationState::kTerminated) continue;
    const Agent& agent = *find_agent(part.agent);
    if (agent.session != 0 || !agent.lost_at) continue;
    // lost_at is the time of the disconnect plus agent_wait().
    const MonoTime at = *agent.lost_at + (kAwayPatience - agent_wait());
    first = std::min(first.value_or(at), at);
  }
  return first;
}

/// The slots on these agents remain unused: a disconnected agent gets no work, and a reconnected one is
/// closed until its leftovers have been killed.
void Core::Impl::abandon(Allocation& allocation) {
  for (AllocationPart& part : allocation.parts) {
    if (part.state == AllocationState::kTerminated) continue;
    Agent& agent = *find_agent(part.agent);
    if (agent.session != 0) continue;
    set_leftover(agent, allocation.id, true);
    finish(allocation, part,
           {ExitKind::kStopped, 0,
            "agent " + part.agent.value + " is out of reach, and ends it when it is back"});
  }
}

void Core::Impl::look_at_deadlines(Allocation& allocation) {
  if (const auto at = abandoned_at(allocation); at && *at <= now.mono) return abandon(allocation);
  if (allocation.preempt_deadline && *allocation.preempt_deadline <= now.mono) {
    kill(allocation, "it did not leave in time");
  } else if (allocation.kill_again && *allocation.kill_again <= now.mono) {
    allocation.kill_again = now.mono + options.kill_repeat;
    set_timer(allocation);
    if (!is(Mutant::kKillNotRepeated)) send_kill(allocation);
  } else {
    set_timer(allocation);  // the deadline has moved or was cleared
  }
}

void Core::Impl::set_timer(const Allocation& allocation) {
  auto deadline = allocation.kill_again ? allocation.kill_again : allocation.preempt_deadline;
  if (is(Mutant::kNoPreemptDeadline)) deadline = allocation.kill_again;
  if (const auto at = abandoned_at(allocation)) deadline = std::min(deadline.value_or(*at), *at);
  timers.set({TimerKind::kAllocation, allocation.id.value}, deadline);
}

}  // namespace det::core
