#include "master/core/allocations.h"

#include <algorithm>
#include <utility>

#include "common/crypto/digest.h"
#include "master/core/owners.h"
#include "master/core/terminating.h"
#include "master/core/transitions.h"

namespace det::core {
namespace {

/// Time without a connection after which a part on an agent no longer delays the end of a trial or command
/// that a user canceled or killed. Long enough for an agent, or the master, to restart. Together with the
/// three heartbeats (6 s) until an agent counts as disconnected, a kill completes within 15 s.
constexpr Duration kMaxDisconnected = std::chrono::seconds(8);

/// Ports where gangs meet: from the default of torchrun, below the kernel's ephemeral range.
constexpr int kFirstPort = 29400;
constexpr int kPorts = 2000;

std::string first_line(const Exit& exit) { return exit.message.substr(0, exit.message.find('\n')); }

/// Appends to the first line of an exit message; the lines below are output of the task.
void append_to_first_line(Exit& exit, const std::string& more) {
  exit.message.insert(std::min(exit.message.find('\n'), exit.message.size()), more);
}

}  // namespace

Allocation* Allocations::find(const AllocationId& id) {
  const auto it = allocations_.find(id);
  return it == allocations_.end() ? nullptr : &it->second;
}

Allocation* Allocations::of(TaskKey task) const {
  const auto it = by_task_.find(task);
  return it == by_task_.end() ? nullptr : it->second;
}

Allocation Allocations::extract(const AllocationId& id) {
  auto node = allocations_.extract(id);
  for (const AllocationPart& part : node.mapped().parts)
    if (!owners_.is(Mutant::kTokenOutlives)) by_token_.erase(part.token_hash);
  return std::move(node.mapped());
}

void Allocations::start(Step& step, TaskKey task, const TaskId& task_id, RunNumber run,
                        const std::vector<scheduler::Part>& parts, bool build) {
  const AllocationId id = build ? build_allocation_id(task_id, run) : allocation_id(task_id, run);
  Allocation& allocation = allocations_[id];
  allocation.id = id;
  allocation.task = task;
  allocation.run = run;
  std::vector<const Agent*> hosts;
  std::string where;
  for (const scheduler::Part& part : parts) {
    const Agent& agent = *owners_.agents.find(part.agent);
    hosts.push_back(&agent);
    allocation.pool = agent.pool;
    allocation.parts.push_back(
        {.agent = agent.id, .agent_instance = agent.instance, .address = agent.address, .slots = part.slots});
    owners_.agents.hold(agent.id, allocation);
    where += (where.empty() ? "agent " : ", agent ") + agent.id.value + " (" +
             std::to_string(part.slots.size()) + (part.slots.size() == 1 ? " slot)" : " slots)");
  }
  allocation.port = port_for(allocation);
  if (allocation.port != 0) ports_.insert(allocation.port);
  allocation.started = step.now.wall;
  allocation.workspace = workspace_of(task);
  by_task_[task] = &allocation;
  step.touch(allocation);
  // Users know a command by its task; the log belongs to the task.
  const std::string subject = task.as<CommandId>() ? "the command" : name_of(task);
  step.log(task_id, run,
           build
               ? "building on agent " + hosts.front()->id.value + ", without slots"
               // Clients of Determined AI count the runs of a trial by the first words.
               : (task.as<CommandId>() ? "" : "New trial runner: ") + subject + " was assigned to " + where);
  for (std::size_t i = 0; i < parts.size(); ++i) send_start(step, allocation, allocation.parts[i], *hosts[i]);
}

std::int64_t Allocations::workspace_of(TaskKey task) const {
  if (const auto command = task.as<CommandId>()) return owners_.commands.at(*command).workspace;
  const Trial& trial = owners_.trials.at(*task.as<TrialId>());
  return owners_.experiments.at(trial.experiment).workspace;
}

int Allocations::port_for(const Allocation& allocation) const {
  if (allocation.parts.size() < 2) return 0;
  // The port differs from run to run: a foreign process may listen on one, and the next run then avoids it.
  const auto first = static_cast<int>((allocation.task.number() * 7 + allocation.run) % kPorts);
  for (int i = 0; i < kPorts; ++i) {
    const int port = kFirstPort + (first + i) % kPorts;
    if (!ports_.contains(port)) return port;
  }
  return kFirstPort + first;
}

std::string Allocations::mint_token() {
  // The key has a fixed length, so the digest is unpredictable without it.
  return sha256_hex(owners_.options.token_key + std::to_string(++minted_));
}

void Allocations::set_token(const Allocation& allocation, AllocationPart& part, std::string hash) {
  const std::string before = std::exchange(part.token_hash, std::move(hash));
  // Parts that an earlier release has started share a token.
  if (!allocation.has_token(before)) by_token_.erase(before);
  by_token_[part.token_hash] = &allocation;
}

void Allocations::send_start(Step& step, Allocation& allocation, AllocationPart& part, const Agent& agent) {
  // To a disconnected agent nothing is sent: `reconcile` repeats the start, with another token, when it
  // reconnects.
  const auto number = static_cast<int>(&part - allocation.parts.data());
  const std::string token = mint_token();
  if (!owners_.is(Mutant::kTokenForgotten) || part.token_hash.empty())
    set_token(allocation, part, sha256_hex(token));
  step.touch(allocation);
  if (agent.session == 0) return;
  if (const auto id = allocation.task.as<CommandId>()) {
    const Command& command = owners_.commands.at(*id);
    step.send(StartAllocation{
        agent.id, agent.session, allocation, number, {}, {}, nullptr, command.code_archive, command, token});
    return;
  }
  const Trial& trial = owners_.trials.of(allocation);
  const Experiment& experiment = owners_.experiments.at(trial.experiment);
  step.send(StartAllocation{agent.id, agent.session, allocation, number, trial, experiment.id,
                            owners_.experiments.search(experiment.id).config, experiment.code_archive,
                            std::nullopt, token, owners_.builds.library(experiment)});
}

void Allocations::preempt(Step& step, Allocation& allocation, const std::string& why) {
  // Without a session no harness could save a checkpoint. Commands have none either.
  if (is_terminating(allocation)) return;
  if (!allocation.attached) return kill(step, allocation, why);
  const Trial& trial = owners_.trials.of(allocation);
  allocation.preempt_requested = true;
  advance(step, allocation, AllocationState::kTerminating);
  limit(allocation, step.now.mono + std::chrono::seconds(owners_.trials.config_of(trial).preemption_timeout));
  owners_.queues.terminating(allocation);
  step.log(trial, allocation.run, "gracefully terminating: " + why);
  step.send(PreemptAllocation{allocation.id});
}

void Allocations::limit(Allocation& allocation, MonoTime deadline) {
  if (allocation.kill_requested || allocation.exit) return;
  // An earlier deadline stays.
  allocation.preempt_deadline = std::min(allocation.preempt_deadline.value_or(deadline), deadline);
  set_timer(allocation);
}

void Allocations::kill(Step& step, Allocation& allocation, const std::string& why) {
  if (allocation.kill_requested || allocation.exit) return;
  allocation.kill_requested = true;
  allocation.preempt_deadline.reset();
  allocation.kill_again = step.now.mono + owners_.options.kill_repeat;
  advance(step, allocation, AllocationState::kTerminating);
  set_timer(allocation);
  owners_.queues.terminating(allocation);
  log(step, allocation, "forcibly killing: " + why);
  send_kill(step, allocation);
}

void Allocations::send_kill(Step& step, const Allocation& allocation) {
  for (const AllocationPart& part : allocation.parts) send_kill(step, allocation, part);
}

void Allocations::send_kill(Step& step, const Allocation& allocation, const AllocationPart& part) {
  if (part.state == AllocationState::kTerminated) return;
  const Agent& agent = *owners_.agents.find(part.agent);
  if (agent.session != 0) step.send(KillAllocation{agent.id, agent.session, allocation.id});
}

void Allocations::log(Step& step, const Allocation& allocation, std::string text, std::string level) const {
  const auto command = allocation.task.as<CommandId>();
  const TaskId& task = command ? owners_.commands.at(*command).task : owners_.trials.of(allocation).task;
  step.log(task, allocation.run, std::move(text), std::move(level));
}

void Allocations::attach(Step& step, Allocation& allocation) {
  if (allocation.attached && allocation.state >= AllocationState::kRunning) return;
  allocation.attached = true;
  advance(step, allocation, AllocationState::kRunning);
}

void Allocations::update(Step& step, Allocation& allocation, AllocationPart& part,
                         const HeldAllocation& held) {
  if (held.state == AllocationState::kTerminated) {
    finish(step, allocation, part,
           held.exit.value_or(Exit{ExitKind::kLost, 0, "the agent does not know how it ended"}));
  } else if (part.state < held.state) {
    advance(step, allocation, part, held.state);
  }
}

void Allocations::repeat_kill(Step& step, const AllocationId& id, const Agent& agent) {
  const Allocation* const allocation = find(id);
  if (!allocation || allocation->state == AllocationState::kTerminated) return;
  const AllocationPart* const part = allocation->part_on(agent.id);
  if (is_killed(*allocation) && part) send_kill(step, *allocation, *part);
}

void Allocations::handle_missing(Step& step, const AllocationId& id, const Agent& agent) {
  Allocation& allocation = allocations_.at(id);
  AllocationPart& part = *allocation.part_on(agent.id);
  // A part that is only assigned: the start was lost on the way. Any later state was reported by the agent,
  // so the process existed and is gone.
  const bool never_began = part.state == AllocationState::kAssigned;
  if (allocation.kill_requested || (allocation.exit && never_began)) {
    finish(step, allocation, part, {ExitKind::kStopped, 0, "stopped before it started"});
  } else if (never_began) {
    send_start(step, allocation, part, agent);
  } else {
    finish(step, allocation, part, {ExitKind::kLost, 0, "agent " + agent.id.value + " no longer has it"});
  }
}

void Allocations::agent_disconnected(Step& step, const AllocationId& id) {
  // The missing agent explains failures of its gang, and starts the time after which a kill is not waited
  // for.
  Allocation& allocation = allocations_.at(id);
  excuse(step, allocation);
  set_timer(allocation);
}

void Allocations::advance(Step& step, Allocation& allocation, AllocationState state) {
  step.touch(allocation);
  if (allocation.state < state) change(allocation.state, state);
}

void Allocations::advance(Step& step, Allocation& allocation, AllocationPart& part, AllocationState state) {
  // An allocation is as far as its least advanced part. kTerminated is left to `finish`.
  if (part.state < state) change(part.state, state);
  auto least = AllocationState::kTerminated;
  for (const AllocationPart& one : allocation.parts) least = std::min(least, one.state);
  if (least < AllocationState::kTerminated) advance(step, allocation, least);
  step.touch(allocation);
}

void Allocations::finish(Step& step, Allocation& allocation, AllocationPart& part, Exit exit) {
  advance(step, allocation, part, AllocationState::kTerminated);
  part.exit = std::move(exit);
  owners_.agents.release(part.agent, allocation);
  // The first failure of a gang is its cause; the parts that are killed because of it follow.
  const bool gang = allocation.parts.size() > 1;
  const bool counts = part.exit->kind != ExitKind::kSucceeded && !part.daemon;
  if (counts && (!allocation.exit || owners_.is(Mutant::kLastExitCounts))) {
    allocation.exit = part.exit;
    if (gang) append_to_first_line(*allocation.exit, " (on agent " + part.agent.value + ")");
  }
  excuse(step, allocation);
  if (owners_.is(Mutant::kGangFreedAtFirst)) owners_.queues.ended(allocation);
  const bool last =
      std::all_of(allocation.parts.begin(), allocation.parts.end(),
                  [](const AllocationPart& one) { return one.state == AllocationState::kTerminated; });
  if (last) return finish(step, allocation);
  if (allocation.kill_again || owners_.is(Mutant::kGangOutlivesPart)) return;
  if (allocation.exit)
    return kill_rest(step, allocation,
                     "a part of it ended: " + first_line(*allocation.exit) + "; the others are killed",
                     "ERROR");
  if (only_daemons_live(allocation))
    kill_rest(step, allocation, "only daemon parts are left; they are ended too", "INFO");
}

std::string Allocations::lost_peer(const Allocation& allocation) const {
  if (owners_.is(Mutant::kPeerErrorCounted)) return "";
  for (const AllocationPart& part : allocation.parts) {
    const bool lost = part.exit && part.exit->kind == ExitKind::kLost;
    if (lost) return "agent " + part.agent.value + " was lost";
    if (!part.exit && owners_.agents.find(part.agent)->session == 0)
      return "agent " + part.agent.value + " is unreachable";
  }
  return "";
}

std::string Allocations::faulty_slot(const Allocation& allocation) const {
  if (owners_.is(Mutant::kFaultCounted)) return "";
  for (const AllocationPart& part : allocation.parts) {
    const std::string fault = owners_.agents.fault(part.agent, part.slots);
    if (!fault.empty()) return "agent " + part.agent.value + " has a fault on " + fault;
  }
  return "";
}

/// When an agent of a gang is lost, the parts on other agents fail first: they lose their peer at once, while
/// the core detects the loss later. Such a failure is not the program's and must not consume a restart. Nor
/// must a failure on a device with a fault, which an agent reports before the exit.
void Allocations::excuse(Step& step, Allocation& allocation) {
  if (!allocation.exit) return;
  const ExitKind kind = allocation.exit->kind;
  std::string cause = kind == ExitKind::kFailed ? lost_peer(allocation) : "";
  if (cause.empty() && (kind == ExitKind::kFailed || kind == ExitKind::kHung))
    cause = faulty_slot(allocation);
  if (cause.empty()) return;
  allocation.exit->kind = ExitKind::kLost;
  append_to_first_line(*allocation.exit, ", " + cause);
  step.touch(allocation);
}

void Allocations::kill_rest(Step& step, Allocation& allocation, const std::string& why,
                            const std::string& level) {
  allocation.preempt_deadline.reset();
  allocation.kill_again = step.now.mono + owners_.options.kill_repeat;
  advance(step, allocation, AllocationState::kTerminating);
  set_timer(allocation);
  owners_.queues.terminating(allocation);
  log(step, allocation, why, level);
  send_kill(step, allocation);
}

void Allocations::finish(Step& step, Allocation& allocation) {
  change(allocation.state, AllocationState::kTerminated);
  // Without a failure the allocation ends like its first part that is not a daemon.
  if (!allocation.exit) {
    const auto counted = std::find_if(allocation.parts.begin(), allocation.parts.end(),
                                      [](const AllocationPart& part) { return !part.daemon; });
    allocation.exit = (counted == allocation.parts.end() ? allocation.parts.begin() : counted)->exit;
  }
  classify_exit(allocation);
  allocation.ended = step.now.wall;
  allocation.preempt_deadline.reset();
  allocation.kill_again.reset();
  set_timer(allocation);
  step.touch(allocation);
  by_task_.erase(allocation.task);
  ports_.erase(allocation.port);
  owners_.queues.ended(allocation);
  const ExitKind kind = allocation.exit->kind;
  const bool bad = is_failure(kind) || kind == ExitKind::kLost || kind == ExitKind::kStorageFull;
  // First line only: the output of the task is in the log already. A build that succeeds has a digest there.
  if (!is_build(allocation.id) || kind != ExitKind::kSucceeded)
    log(step, allocation, "exited: " + first_line(*allocation.exit), bad ? "ERROR" : "INFO");
  if (allocation.task.as<CommandId>()) return owners_.commands.end_run(step, allocation);
  owners_.trials.end_run(step, allocation);
}

void Allocations::classify_exit(Allocation& allocation) const {
  const Trial* const trial = owners_.trials.find(allocation.task);
  if (!trial) return;
  Exit& exit = *allocation.exit;
  if (trial->early_exit_invalid_hp && (exit.kind == ExitKind::kSucceeded || exit.kind == ExitKind::kFailed)) {
    exit.kind = ExitKind::kInvalidHp;
    exit.message = "the trial rejected its hyperparameters";
  } else if (allocation.preempt_acknowledged && exit.kind == ExitKind::kSucceeded) {
    exit.kind = ExitKind::kPreempted;
    exit.message = "preempted, and ended by itself";
  }
}

std::optional<MonoTime> Allocations::abandoned_at(const Allocation& allocation) const {
  if (!is_terminating(allocation)) return std::nullopt;
  // Only a cancel or a kill by a user justifies an end without the exit. Preempted trials wait for the agent:
  // they could otherwise start elsewhere while their process still runs.
  const auto command = allocation.task.as<CommandId>();
  const State state = command ? owners_.commands.at(*command).state : owners_.trials.of(allocation).state;
  if (state != State::kStoppingCanceled && state != State::kStoppingKilled) return std::nullopt;
  std::optional<MonoTime> first;
  for (const AllocationPart& part : allocation.parts) {
    // A part that has ended may have outlived its agent.
    if (part.state == AllocationState::kTerminated) continue;
    const Agent& agent = *owners_.agents.find(part.agent);
    if (agent.session != 0 || !agent.lost_at) continue;
    // lost_at is the time of the disconnect plus agent_wait().
    const MonoTime at = *agent.lost_at + (kMaxDisconnected - owners_.options.agent_wait());
    first = std::min(first.value_or(at), at);
  }
  return first;
}

/// The slots on these agents remain unused: a disconnected agent gets no work, and a reconnected one is
/// closed until its leftovers have been killed.
void Allocations::abandon(Step& step, Allocation& allocation) {
  for (AllocationPart& part : allocation.parts) {
    if (part.state == AllocationState::kTerminated) continue;
    Agent& agent = *owners_.agents.find(part.agent);
    if (agent.session != 0) continue;
    owners_.agents.set_leftover(agent, allocation.id, true);
    finish(step, allocation, part,
           {ExitKind::kStopped, 0,
            "agent " + part.agent.value + " is unreachable; it ends its processes when it reconnects"});
  }
}

void Allocations::on_deadline(Step& step, const AllocationId& id) {
  Allocation* const found = find(id);
  if (!found || found->state == AllocationState::kTerminated) return;
  Allocation& allocation = *found;
  if (const auto at = abandoned_at(allocation); at && *at <= step.now.mono) return abandon(step, allocation);
  if (allocation.preempt_deadline && *allocation.preempt_deadline <= step.now.mono) {
    kill(step, allocation, "it did not exit in time");
  } else if (allocation.kill_again && *allocation.kill_again <= step.now.mono) {
    allocation.kill_again = step.now.mono + owners_.options.kill_repeat;
    set_timer(allocation);
    send_kill(step, allocation);
  } else {
    set_timer(allocation);  // the deadline has moved or was cleared
  }
}

void Allocations::set_timer(const Allocation& allocation) {
  auto deadline = allocation.kill_again ? allocation.kill_again : allocation.preempt_deadline;
  if (owners_.is(Mutant::kNoPreemptDeadline)) deadline = allocation.kill_again;
  if (const auto at = abandoned_at(allocation)) deadline = std::min(deadline.value_or(*at), *at);
  owners_.timers.set({TimerKind::kAllocation, allocation.id.value}, deadline);
}

}  // namespace det::core
