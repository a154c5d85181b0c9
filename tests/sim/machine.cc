// The simulated agent: it holds an allocation until it is forgotten, replies to every command with the state,
// and obeys the lease. The lease counts from the SENDING of the heartbeat that was acknowledged, so a slow
// reply renews little.
#include "tests/sim/machine.h"

#include <algorithm>

#include "common/base/exit_codes.h"
#include "common/crypto/digest.h"
#include "master/core/build_id.h"

namespace det::sim {
namespace {

constexpr Duration kHeartbeat = seconds(10);
/// Silence after which either side closes the link.
constexpr Duration kSilence = seconds(25);

}  // namespace

using core::AllocationState;
using core::ExitKind;

Machine::Machine(Engine& engine, Master& master, Checker& checker, const Plan& plan, AgentId name,
                 std::string instance, int slots, bool ephemeral)
    : engine_(engine),
      master_(master),
      checker_(checker),
      plan_(plan),
      name_(std::move(name)),
      instance_(std::move(instance)),
      slots_(slots),
      ephemeral_(ephemeral) {}

void Machine::start() {
  agent_up_ = true;
  stopping_ = false;
  ++agent_life_;
  // A restart loses the agent's own operations. Processes and their exit records survive.
  for (auto& [id, held] : held_) {
    if (!held.exit && !(held.process && held.process->alive())) {
      held.state = AllocationState::kTerminated;
      held.exit = core::Exit{ExitKind::kLost, 0, "lost by a restart of the agent"};
    }
  }
  connect();
}

std::vector<std::shared_ptr<Process>> Machine::processes() const {
  std::vector<std::shared_ptr<Process>> alive;
  for (const auto& [id, held] : held_) {
    if (held.process && held.process->alive()) alive.push_back(held.process);
  }
  return alive;
}

std::vector<core::HeldAllocation> Machine::held() const {
  std::vector<core::HeldAllocation> all;
  for (const auto& [id, held] : held_) all.push_back({id, held.state, held.exit});
  return all;
}

void Machine::reconnect() {
  if (std::exchange(connecting_, true)) return;
  engine_.after(engine_.between(milliseconds(300), seconds(5)), [self = shared_from_this()] {
    self->connecting_ = false;
    if (!self->link_) self->connect();
  });
}

void Machine::drop_link() {
  link_.reset();
  if (agent_up_ && !dead_) reconnect();
}

void Machine::connect() {
  if (dead_ || !agent_up_ || link_) return;
  if (!master_.up() || engine_.now() < cut_until_) return reconnect();
  auto link = link_ = std::make_shared<Link>(engine_);
  link->life = master_.life();
  link->agent_heard = engine_.now();
  checks_ = 0;
  // Sometimes the first message is so late that the agent connects again, and the second is faster.
  if (engine_.chance(3)) {
    link->up.stall(engine_.between(seconds(1), seconds(10)));
    engine_.after(engine_.between(milliseconds(100), seconds(2)), [self = shared_from_this(), link] {
      if (self->current(link) && !link->accepted) self->drop_link();
    });
  }
  link->up.send([self = shared_from_this(), link, held = held(), sent = engine_.now(),
                 number = ++connections_] { self->hello(link, held, sent, number); });
  heartbeat(link);
}

void Machine::hello(const LinkPtr& link, const std::vector<core::HeldAllocation>& held, MonoTime sent,
                    std::int64_t number) {
  // A connection ends with the process of the master.
  if (!master_.up() || master_.life() != link->life) return;
  link->master_heard = engine_.now();
  link->session = master_.open_agent([self = shared_from_this(), link](const core::Send& send) {
    link->down.send([self, link, send] {
      if (self->current(link)) self->command(send);
    });
  });
  core::AgentConnected input{.agent = name_, .instance = instance_, .version = "sim", .held = held};
  input.session = link->session;
  input.ephemeral = ephemeral_;
  input.problem = problem_;
  input.slot_problems = slot_problems();
  input.checks_slots = true;
  input.boot = "boot " + std::to_string(boot_);
  input.connection = number;
  // Pairs of slots are connected fast.
  for (int slot = 0; slot < slots_; ++slot) input.slots.push_back({"ARTIFICIAL", "sim", "", slot / 2});
  master_.submit(std::move(input), [self = shared_from_this(), link, sent](Answer answer) {
    if (answer) link->accepted = true;
    link->down.send([self, link, answer, sent] { self->welcomed(link, answer, sent); });
    if (!answer) self->master_.close_agent(self->name_, link->session);
  });
  watch_edge(link);
}

void Machine::welcomed(const LinkPtr& link, const Answer& answer, MonoTime sent) {
  if (!current(link)) return;
  link->agent_heard = engine_.now();
  if (!answer) {
    engine_.trace(instance_ + " is refused: " + answer.error().message);
    return drop_link();
  }
  renew(sent);
  if (stopping_) announce();
  // Changes since the first message.
  send_slots();
  send_problem();
}

void Machine::watch_edge(const LinkPtr& link) {
  engine_.after(seconds(5), [self = shared_from_this(), link] {
    if (!self->master_.up() || self->master_.life() != link->life) return;
    if (!self->master_.agent_is_open(link->session)) return;
    if (self->engine_.now() - link->master_heard > kSilence) {
      self->engine_.trace("master closes the link to " + self->instance_);
      return self->master_.close_agent(self->name_, link->session);
    }
    self->watch_edge(link);
  });
}

void Machine::heartbeat(const LinkPtr& link) {
  engine_.after(kHeartbeat, [self = shared_from_this(), link] {
    if (!self->current(link)) return;
    if (self->engine_.now() - link->agent_heard > kSilence) {
      self->engine_.trace(self->instance_ + " closes its link");
      return self->drop_link();
    }
    link->up.send([self, link, sent = self->engine_.now()] {
      if (!self->master_.up() || self->master_.life() != link->life || !link->accepted) return;
      if (!self->master_.agent_is_open(link->session)) return;
      link->master_heard = self->engine_.now();
      link->down.send([self, link, sent] {
        if (!self->current(link)) return;
        link->agent_heard = self->engine_.now();
        self->renew(sent);
      });
    });
    self->heartbeat(link);
  });
}

void Machine::renew(MonoTime sent) {
  lease_from_ = std::max(lease_from_, sent);
  if (!watching_lease_) watch_lease();
}

void Machine::watch_lease() {
  watching_lease_ = true;
  const Duration left = plan_.options.agent_lease - (engine_.now() - lease_from_);
  engine_.after(left, [self = shared_from_this()] {
    if (self->dead_) return;
    self->watching_lease_ = false;
    if (self->engine_.now() - self->lease_from_ < self->plan_.options.agent_lease) return self->watch_lease();
    self->engine_.trace("the lease of " + self->instance_ + " ends");
    for (const auto& held : self->held()) self->kill(held.id);
  });
}

void Machine::command(const core::Send& send) {
  if (auto* check_slot = std::get_if<core::CheckSlot>(&send)) return check(*check_slot);
  if (auto* start = std::get_if<core::StartAllocation>(&send)) return begin(*start);
  if (auto* stop = std::get_if<core::KillAllocation>(&send)) {
    if (!held_.contains(stop->allocation)) {
      // An unknown allocation: the master needs the report that it does not run.
      Held& held = held_[stop->allocation];
      held.state = AllocationState::kTerminated;
      held.exit = core::Exit{ExitKind::kStopped, 0, "never started"};
    }
    kill(stop->allocation);
    return tell(stop->allocation);
  }
  if (auto* forgotten = std::get_if<core::AllocationForgotten>(&send)) {
    auto it = held_.find(forgotten->allocation);
    if (it == held_.end()) return;
    if (!it->second.exit) checker_.fail(forgotten->allocation.value + " is to be forgotten but runs");
    held_.erase(it);
  }
}

void Machine::begin(const core::StartAllocation& start) {
  const AllocationId id = start.allocation.id;
  if (!held_.contains(id)) {
    for (const int slot : start.allocation.parts.at(static_cast<std::size_t>(start.part)).slots) {
      if (checked_.contains(slot))
        checker_.fail(id.value + " starts on slot " + std::to_string(slot) + ", which is being checked");
    }
    const auto row = master_.disk().allocations.find(id);
    if (row == master_.disk().allocations.end() || !row->second.has_token(sha256_hex(start.token)))
      checker_.fail(id.value + " starts with a token that is not durable");
    held_[id].start = start;
    engine_.after(engine_.between(milliseconds(50), seconds(4)),
                  [self = shared_from_this(), id, life = agent_life_] {
                    if (life == self->agent_life_) self->pulled(id);
                  });
  }
  tell(id);
}

void Machine::pulled(const AllocationId& id) {
  auto it = held_.find(id);
  if (dead_ || it == held_.end() || it->second.exit || it->second.killed) return;
  Held& held = it->second;
  const core::Allocation& allocation = held.start.allocation;
  if (core::is_build(id)) return exited(id, build(held.start));
  ProcessTruth truth{.machine = instance_,
                     .slots = allocation.parts.at(static_cast<std::size_t>(held.start.part)).slots,
                     .task = allocation.task,
                     .run = allocation.run,
                     .part = held.start.part,
                     .parts = static_cast<int>(allocation.parts.size())};
  held.process = std::make_shared<Process>(engine_, master_, checker_, program_of(held.start), held.start,
                                           std::move(truth),
                                           [this, id](core::Exit exit) { exited(id, std::move(exit)); });
  held.state = engine_.chance(50) ? AllocationState::kStarting : AllocationState::kRunning;
  held.process->begin();
  tell(id);
}

core::Exit Machine::build(const core::StartAllocation& start) {
  switch (program_of(start).build) {
    case Job::Build::kWorks:
      return {ExitKind::kSucceeded, 0, "digest of " + start.code_archive};
    case Job::Build::kRejected:
      return {ExitKind::kFailed, kExitFinal, "model_def.cpp does not compile"};
    default:
      return {ExitKind::kOutOfMemory, 0, "the compiler ran out of memory"};
  }
}

const Job& Machine::program_of(const core::StartAllocation& start) const {
  if (start.command) {
    return std::find_if(plan_.commands.begin(), plan_.commands.end(),
                        [&](const CommandPlan& plan) { return plan.config == start.command->config; })
        ->program;
  }
  return *std::find_if(plan_.jobs.begin(), plan_.jobs.end(),
                       [&](const Job& job) { return job.id.value == start.config->name; });
}

void Machine::kill(const AllocationId& id) {
  Held& held = held_.at(id);
  if (held.exit || std::exchange(held.killed, true)) return;
  if (held.process && held.process->alive()) return held.process->terminate(plan_.options.agent_kill_grace);
  exited(id, {ExitKind::kStopped, 0, "stopped before it started"});
}

void Machine::exited(const AllocationId& id, core::Exit exit) {
  Held& held = held_.at(id);
  held.state = AllocationState::kTerminated;
  held.exit = std::move(exit);
  tell(id);
}

void Machine::tell(const AllocationId& id) {
  auto it = held_.find(id);
  if (it == held_.end() || !link_ || !agent_up_) return;
  const core::HeldAllocation state{id, it->second.state, it->second.exit};
  link_->up.send([self = shared_from_this(), link = link_, state] {
    if (self->master_.up() && self->master_.life() == link->life) {
      self->master_.submit(core::AllocationUpdated{self->name_, link->session, state});
    }
  });
}

void Machine::cut(Duration duration) {
  engine_.trace(instance_ + " is cut off");
  cut_until_ = std::max(cut_until_, engine_.now() + duration);
  if (!link_) return;
  link_->up.close();
  link_->down.close();
}

void Machine::stall(Duration duration) {
  if (!link_) return;
  engine_.trace("the link of " + instance_ + " stalls");
  const auto which = engine_.between(0, 2);
  if (which != 0) link_->up.stall(duration);
  if (which != 1) link_->down.stall(duration);
}

void Machine::restart_agent(Duration away) {
  if (dead_ || !agent_up_) return;
  engine_.trace("agent " + instance_ + " restarts");
  agent_up_ = false;
  ++agent_life_;
  checked_.clear();
  link_.reset();
  engine_.after(away, [self = shared_from_this()] {
    if (!self->dead_) self->start();
  });
}

void Machine::stop_agent(Duration patience, Duration away) {
  if (dead_ || !agent_up_ || stopping_) return;
  engine_.trace("agent " + instance_ + " is stopping");
  stopping_ = true;
  if (link_) announce();
  engine_.after(patience, [self = shared_from_this(), life = agent_life_, away] {
    if (self->agent_life_ == life) self->ephemeral_ ? self->leave(away) : self->reboot(away);
  });
}

void Machine::leave(Duration away) {
  engine_.trace("agent " + instance_ + " leaves");
  for (const auto& process : processes()) process->vanish();
  if (link_) {
    link_->up.send([self = shared_from_this(), link = link_] {
      if (self->master_.up() && self->master_.life() == link->life && link->accepted)
        self->master_.submit(core::AgentLeft{self->name_, link->session});
    });
  }
  held_.clear();
  instance_ += "'";
  restart_agent(away);
}

void Machine::announce() {
  link_->up.send([self = shared_from_this(), link = link_] {
    if (self->master_.up() && self->master_.life() == link->life && link->accepted)
      self->master_.submit(core::AgentStopping{self->name_, link->session});
  });
}

void Machine::trouble(Duration duration) {
  if (dead_ || !problem_.empty()) return;
  engine_.trace("the disk of " + instance_ + " is full");
  problem_ = "the disk is full";
  send_problem();
  engine_.after(duration, [self = shared_from_this()] {
    self->problem_.clear();
    self->send_problem();
  });
}

void Machine::send_problem() {
  // A connection that begins later has it in its first message.
  if (!link_) return;
  link_->up.send([self = shared_from_this(), link = link_, problem = problem_] {
    if (self->master_.up() && self->master_.life() == link->life && link->accepted)
      self->master_.submit(core::AgentProblem{self->name_, link->session, problem});
  });
}

std::map<int, std::string> Machine::slot_problems() const {
  std::map<int, std::string> problems;
  for (const int slot : faulty_) problems[slot] = "Xid 79";
  for (const int slot : checked_) problems.emplace(slot, "is being checked");
  return problems;
}

bool Machine::Held::has(int slot) const {
  if (start.allocation.parts.empty()) return false;
  const auto& slots = start.allocation.parts.at(static_cast<std::size_t>(start.part)).slots;
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

void Machine::trouble_slot(Duration duration, bool fatal) {
  if (dead_ || slots_ == 0) return;
  const int slot = static_cast<int>(engine_.between(0, slots_ - 1));
  engine_.trace("the device of slot " + std::to_string(slot) + " of " + instance_ + " has a fault");
  faulty_.insert(slot);
  send_slots();
  repair_slot(slot, duration);
  std::shared_ptr<Process> on_it;
  for (const auto& [id, held] : held_)
    if (held.has(slot) && held.process && held.process->alive()) on_it = held.process;
  if (fatal && on_it) on_it->fail_on_device();
}

void Machine::repair_slot(int slot, Duration after) {
  engine_.after(after, [self = shared_from_this(), slot] {
    const bool unforgotten = std::any_of(self->held_.begin(), self->held_.end(), [&](const auto& one) {
      return one.second.exit && one.second.has(slot);
    });
    if (unforgotten && !self->dead_) return self->repair_slot(slot, seconds(1));
    self->faulty_.erase(self->faulty_.find(slot));
    self->send_slots();
  });
}

void Machine::check(const core::CheckSlot& send) {
  checks_ = send.number;
  const bool busy = std::any_of(held_.begin(), held_.end(), [&](const auto& one) {
    return !one.second.exit && one.second.has(send.slot);
  });
  if (!busy) {
    checked_.insert(send.slot);
    engine_.after(engine_.between(seconds(1), minutes(1)),
                  [self = shared_from_this(), slot = send.slot, life = agent_life_] {
                    if (life != self->agent_life_) return;
                    self->checked_.erase(slot);
                    self->send_slots();
                  });
  }
  send_slots();
}

void Machine::send_slots() {
  if (!link_) return;
  link_->up.send([self = shared_from_this(), link = link_, problems = slot_problems(), checks = checks_] {
    if (self->master_.up() && self->master_.life() == link->life && link->accepted)
      self->master_.submit(core::SlotProblems{self->name_, link->session, problems, checks});
  });
}

void Machine::reboot(Duration away) {
  if (dead_ || !agent_up_) return;
  engine_.trace("machine " + instance_ + " restarts");
  for (const auto& process : processes()) process->vanish();
  ++boot_;
  restart_agent(away);
}

void Machine::die() {
  if (dead_) return;
  engine_.trace("machine " + instance_ + " dies");
  for (const auto& process : processes()) process->vanish();
  dead_ = true;
  link_.reset();
}

}  // namespace det::sim
