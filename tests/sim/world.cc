// The run: a phase with faults, then a phase without faults in which everything must finish.
#include "tests/sim/world.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tests/sim/batch_engine.h"
#include "tests/sim/commands.h"
#include "tests/sim/machine.h"
#include "tests/sim/users.h"

namespace det::sim {
namespace {

/// All jobs of a plan belong to this user and this workspace.
const scheduler::QuotaKey kSimulatedUser{scheduler::QuotaKey::Scope::kUser, UserId{}.value};
const scheduler::QuotaKey kSimulatedWorkspace{scheduler::QuotaKey::Scope::kWorkspace, 1};

class World {
 public:
  World(const Plan& plan, bool print)
      : plan_(plan), engine_(plan.seed, print), checker_(engine_, plan), master_(engine_, plan, checker_) {}

  Outcome run();

 private:
  using Fault = void (World::*)();

  void faults();
  void inject();
  void crash_master();
  void cut_link();
  void stall_link();
  void stop_agent();
  void restart_agent();
  void reboot_machine();
  void kill_machine();
  void cut_harness();
  void crash_process();
  void send_impostor();
  void slow_store();
  void outage() { batch_.outage(engine_.between(seconds(1), minutes(3))); }
  void refusal() { batch_.refuse(engine_.between(seconds(1), minutes(1))); }
  void preempt_pilot() { batch_.preempt_job(); }
  void end_pilot() { batch_.end_job(); }
  void lose_pilot() { batch_.lose_job(); }
  void change_queue();
  void change_service();
  void change_quota();
  void trouble_agent() { some_machine().trouble(engine_.between(seconds(1), minutes(2))); }
  void trouble_slot() {
    some_machine().trouble_slot(engine_.between(seconds(1), minutes(2)), engine_.chance(50));
  }
  void enable_all();
  bool faulty() const { return engine_.now() < MonoTime{plan_.faults.until.count()}; }
  void watch_end();
  bool over() const;
  /// Names what has not ended, a line each.
  std::string unfinished() const;
  Machine& some_machine() { return *machines_[engine_.random().below(machines_.size())]; }
  std::shared_ptr<Process> some_process();

  const Plan& plan_;
  Engine engine_;
  Checker checker_;
  Master master_;
  std::vector<std::shared_ptr<Machine>> machines_;  ///< In the order of the plan, then those of pilots.
  BatchEngine batch_{
      engine_, master_, checker_, plan_, [this](std::shared_ptr<Machine> machine) {
        // Machines of ended pilots are of no use to the faults.
        std::erase_if(machines_, [this](const auto& one) { return plan_.machines.empty() && one->dead(); });
        machines_.push_back(std::move(machine));
      }};
  std::vector<std::shared_ptr<Machine>> impostors_;
  std::vector<std::shared_ptr<User>> users_;
  std::vector<std::shared_ptr<CommandUser>> command_users_;
  bool over_ = false;
};

std::string World::unfinished() const {
  std::string text;
  const auto add = [&](const std::string& name, core::State state) {
    if (!core::is_terminal(state)) text += "\n  " + name + " is " + std::string(core::state_name(state));
  };
  for (const auto& [id, experiment] : master_.disk().experiments) add(name_of(id), experiment.state);
  for (const auto& [id, trial] : master_.disk().trials) add(name_of(id), trial.state);
  for (const auto& [id, command] : master_.disk().commands) add(command.task.value, command.state);
  for (const auto& machine : machines_) {
    if (!machine->dead() && machine->holds_anything())
      text += "\n  " + machine->name().value + " holds allocations";
  }
  for (const auto& user : users_) text += user->submitted() ? "" : "\n  a user has not submitted";
  for (const auto& user : command_users_) text += user->done() ? "" : "\n  a user of a command is not done";
  return text;
}

Outcome World::run() {
  batch_.start();
  master_.start();
  for (const MachinePlan& machine : plan_.machines) {
    machines_.push_back(std::make_shared<Machine>(engine_, master_, checker_, plan_, machine.name,
                                                  machine.name.value + "-machine", machine.slots,
                                                  machine.ephemeral));
    machines_.back()->start();
  }
  for (const Job& job : plan_.jobs) {
    users_.push_back(std::make_shared<User>(engine_, master_, checker_, job));
    users_.back()->start();
  }
  for (const CommandPlan& command : plan_.commands) {
    command_users_.push_back(std::make_shared<CommandUser>(engine_, master_, checker_, command));
    command_users_.back()->start();
  }
  faults();
  watch_end();
  engine_.run_until(MonoTime{(plan_.faults.until + plan_.finish_within).count()},
                    [this] { return over_ || !checker_.failure().empty(); });
  if (checker_.failure().empty()) {
    if (!over_) checker_.fail("not everything finished in time" + unfinished());
    checker_.at_end(master_.disk());
  }
  return {checker_.failure(), engine_.trace_hash(), engine_.events(), engine_.time()};
}

bool World::over() const {
  if (faulty() || !master_.up() || checker_.any_process() || !master_.core()->allocations().empty())
    return false;
  if (!batch_.empty() || !master_.core()->pilots().empty()) return false;
  for (const auto& user : users_) {
    if (!user->submitted()) return false;
  }
  for (const auto& user : command_users_) {
    if (!user->done()) return false;
  }
  for (const auto& [id, experiment] : master_.disk().experiments) {
    if (!core::is_terminal(experiment.state)) return false;
  }
  for (const auto& [id, command] : master_.disk().commands) {
    if (!core::is_terminal(command.state)) return false;
  }
  return std::none_of(machines_.begin(), machines_.end(),
                      [](const auto& machine) { return !machine->dead() && machine->holds_anything(); });
}

void World::watch_end() {
  engine_.after(seconds(3), [this] {
    over_ = over();
    watch_end();
  });
}

void World::faults() {
  const auto mean = plan_.faults.every.count();
  engine_.after(Duration(engine_.between(1, 2 * mean)), [this] {
    if (!faulty()) {
      for (const auto& impostor : impostors_) impostor->die();
      return enable_all();
    }
    inject();
    faults();
  });
}

void World::inject() {
  // Before the first pilot starts there is no machine to disturb.
  if (machines_.empty()) return crash_master();
  const Faults& f = plan_.faults;
  const std::array<std::pair<int, Fault>, 21> kinds = {
      {{f.master_crash, &World::crash_master},     {f.link_cut, &World::cut_link},
       {f.link_stall, &World::stall_link},         {f.agent_restart, &World::restart_agent},
       {f.machine_reboot, &World::reboot_machine}, {f.machine_death, &World::kill_machine},
       {f.harness_cut, &World::cut_harness},       {f.process_crash, &World::crash_process},
       {f.impostor, &World::send_impostor},        {f.slow_store, &World::slow_store},
       {f.queue_change, &World::change_queue},     {f.service_change, &World::change_service},
       {f.agent_stop, &World::stop_agent},         {f.engine_outage, &World::outage},
       {f.engine_refusal, &World::refusal},        {f.pilot_preempted, &World::preempt_pilot},
       {f.pilot_ended, &World::end_pilot},         {f.pilot_lost, &World::lose_pilot},
       {f.quota_change, &World::change_quota},     {f.agent_problem, &World::trouble_agent},
       {f.slot_fault, &World::trouble_slot}}};
  std::int64_t total = 0;
  for (const auto& [weight, fault] : kinds) total += weight;
  if (total == 0) return;
  std::int64_t pick = engine_.between(0, total - 1);
  for (const auto& [weight, fault] : kinds) {
    if (pick < weight) return (this->*fault)();
    pick -= weight;
  }
}

void World::crash_master() {
  if (!master_.up()) return;
  master_.crash();
  const Duration away = engine_.chance(15) ? engine_.between(seconds(30), minutes(3))
                                           : engine_.between(milliseconds(200), seconds(20));
  engine_.after(away, [this] { master_.start(); });
}

void World::cut_link() {
  some_machine().cut(engine_.chance(30) ? engine_.between(seconds(30), minutes(4))
                                        : engine_.between(milliseconds(100), seconds(20)));
}

void World::stall_link() { some_machine().stall(engine_.between(seconds(1), minutes(2))); }

void World::restart_agent() {
  some_machine().restart_agent(engine_.chance(20) ? engine_.between(seconds(30), minutes(3))
                                                  : engine_.between(milliseconds(500), seconds(20)));
}

void World::stop_agent() {
  some_machine().stop_agent(engine_.between(milliseconds(100), minutes(1)),
                            engine_.between(seconds(1), minutes(2)));
}

void World::reboot_machine() { some_machine().reboot(engine_.between(seconds(5), minutes(2))); }

void World::kill_machine() {
  const std::size_t index = engine_.random().below(machines_.size());
  // Machines of pilots are replaced by further pilots.
  if (index >= plan_.machines.size() || !plan_.machines[index].immortal) machines_[index]->die();
}

std::shared_ptr<Process> World::some_process() {
  std::vector<std::shared_ptr<Process>> all;
  for (const auto& machine : machines_) {
    for (auto& process : machine->processes()) all.push_back(std::move(process));
  }
  for (const auto& user : users_) {
    if (user->process() && user->process()->alive()) all.push_back(user->process());
  }
  return all.empty() ? nullptr : all[engine_.random().below(all.size())];
}

void World::cut_harness() {
  if (auto process = some_process()) process->cut();
}

void World::crash_process() {
  if (auto process = some_process()) process->crash();
}

void World::send_impostor() {
  const AgentId name = some_machine().name();
  auto impostor = std::make_shared<Machine>(engine_, master_, checker_, plan_, name,
                                            name.value + "-impostor" + std::to_string(impostors_.size()), 2);
  engine_.trace("an impostor of " + name.value + " appears");
  impostors_.push_back(impostor);
  impostor->start();
  engine_.after(engine_.between(seconds(5), minutes(2)), [impostor] { impostor->die(); });
}

void World::change_queue() {
  if (!master_.up()) return;
  std::vector<JobKey> live;
  for (const auto& [id, experiment] : master_.core()->experiments()) live.push_back(id);
  for (const auto& [id, command] : master_.core()->commands()) live.push_back(id);
  if (live.empty()) return;
  core::UpdateJob update{.job = live[engine_.random().below(live.size())]};
  switch (engine_.between(0, 2)) {
    case 0:
      update.priority = static_cast<int>(engine_.between(1, 99));
      break;
    case 1:
      update.weight = static_cast<double>(engine_.between(1, 5));
      break;
    default:
      update.beside = core::UpdateJob::Beside{
          .side = engine_.chance(50) ? scheduler::Side::kAhead : scheduler::Side::kBehind,
          .anchor = live[engine_.random().below(live.size())]};
  }
  engine_.trace("an administrator changes the queue");
  master_.submit(update);
}

void World::change_quota() {
  if (!master_.up()) return;
  core::SetQuota change{.of = engine_.chance(50) ? kSimulatedUser : kSimulatedWorkspace};
  if (engine_.chance(70)) change.limit = engine_.between(0, 6);
  engine_.trace("an administrator changes a quota");
  master_.submit(change);
}

void World::change_service() {
  const Machine& machine = some_machine();
  core::SetService change{
      .agent = machine.name(), .enabled = engine_.chance(50), .drain = engine_.chance(50)};
  if (engine_.chance(40)) change.slot = static_cast<int>(engine_.between(0, 3));
  engine_.trace("an administrator changes the service of " + machine.name().value);
  master_.submit(change);
}

void World::enable_all() {
  if (!master_.up()) {
    engine_.after(seconds(1), [this] { enable_all(); });
    return;
  }
  for (const auto& machine : machines_) {
    master_.submit(core::SetService{.agent = machine->name()});
    for (int slot = 0; slot < 4; ++slot)
      master_.submit(core::SetService{.agent = machine->name(), .slot = slot});
  }
  for (const scheduler::QuotaKey& of : {kSimulatedUser, kSimulatedWorkspace})
    master_.submit(core::SetQuota{.of = of});
  // The master may crash before the change is durable.
  bool enabled = master_.disk().quotas.empty();
  for (const auto& [id, settings] : master_.disk().agents)
    enabled = enabled && settings.enabled && settings.disabled_slots.empty();
  if (!enabled) engine_.after(seconds(5), [this] { enable_all(); });
}

void World::slow_store() { master_.stall_store(engine_.between(milliseconds(100), seconds(15))); }

}  // namespace

Outcome simulate(const Plan& plan, bool print_trace) {
  // On the heap, because events hold references into it.
  return std::make_unique<World>(plan, print_trace)->run();
}

}  // namespace det::sim
