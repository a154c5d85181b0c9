// Ended jobs stay known for a while, as with MinJobAge of Slurm; then a repeated submission is a new job.
#include "tests/sim/batch_engine.h"

#include <algorithm>
#include <utility>

namespace det::sim {
namespace {

constexpr Duration kMinJobAge = seconds(60);

}  // namespace

using core::PilotPhase;

BatchEngine::BatchEngine(Engine& engine, Master& master, Checker& checker, const Plan& plan,
                         std::function<void(std::shared_ptr<Machine>)> appear)
    : engine_(engine), master_(master), checker_(checker), plan_(plan), appear_(std::move(appear)) {}

void BatchEngine::start() {
  if (plan_.options.providers.empty()) return;
  master_.on_engine([this](const core::Send& send) {
    // A command of the edge takes a while; one in twenty is lost.
    if (engine_.chance(5)) return;
    engine_.after(engine_.between(milliseconds(5), engine_.chance(5) ? seconds(30) : milliseconds(300)),
                  [this, send] {
                    if (!away()) receive(send);
                  });
  });
  report();
}

bool BatchEngine::empty() const {
  return std::all_of(jobs_.begin(), jobs_.end(),
                     [](const auto& one) { return one.second.phase == PilotPhase::kEnded; });
}

void BatchEngine::receive(const core::Send& send) {
  if (auto* pilot = std::get_if<core::SubmitPilot>(&send)) return submit(*pilot);
  const std::string& name = std::get<core::CancelPilot>(send).name;
  engine_.trace("engine cancels " + name);
  BatchJob& job = jobs_[name];
  job.pool = std::get<core::CancelPilot>(send).pool;
  end(job, "canceled");
  send_report(name, job);
}

void BatchEngine::submit(const core::SubmitPilot& pilot) {
  const auto known = jobs_.find(pilot.name);
  if (known != jobs_.end()) return send_report(known->first, known->second);
  BatchJob& job = jobs_[pilot.name];
  job.pool = pilot.pool;
  job.nodes = pilot.nodes;
  job.reason = "Resources";
  engine_.trace("engine has " + pilot.name + " of " + std::to_string(pilot.nodes) + " nodes");
  if (engine_.now() < refuse_until_) {
    end(job, "refused");
  } else {
    const Duration wait = engine_.chance(20) ? engine_.between(seconds(10), minutes(2))
                                             : engine_.between(milliseconds(100), seconds(10));
    engine_.after(wait, [this, name = pilot.name] { run(name); });
  }
  send_report(pilot.name, job);
}

void BatchEngine::run(const std::string& name) {
  const auto found = jobs_.find(name);
  if (found == jobs_.end() || found->second.phase != PilotPhase::kPending) return;
  BatchJob& job = found->second;
  engine_.trace("engine runs " + name);
  job.phase = PilotPhase::kRunning;
  job.reason.clear();
  const core::PilotRules& rules = plan_.options.providers.at(job.pool);
  const int slots = rules.slots_per_node;
  if (rules.min_time_left > Duration(0)) {
    const Duration limit = engine_.between(minutes(2), minutes(30));
    job.until = WallTime{engine_.now().micros + limit.count()};
    engine_.after(limit, [this, name] {
      const auto ending = jobs_.find(name);
      if (ending != jobs_.end() && ending->second.phase == PilotPhase::kRunning) preempt(ending->second);
    });
  }
  ++incarnations_;
  for (int node = 0; node < job.nodes; ++node) {
    const std::string agent = name + "-" + std::to_string(node);
    job.machines.push_back(std::make_shared<Machine>(engine_, master_, checker_, plan_, AgentId(agent),
                                                     agent + "-machine" + std::to_string(incarnations_),
                                                     slots));
    job.machines.back()->start();
    appear_(job.machines.back());
  }
}

void BatchEngine::end(BatchJob& job, const std::string& reason) {
  if (job.phase == PilotPhase::kEnded) return;
  job.phase = PilotPhase::kEnded;
  job.reason = reason;
  job.ended = engine_.now();
  for (const auto& machine : job.machines) machine->die();
}

void BatchEngine::report() {
  engine_.after(seconds(1), [this] { report(); });
  std::erase_if(jobs_, [this](const auto& one) {
    return one.second.phase == PilotPhase::kEnded && engine_.now() - one.second.ended > kMinJobAge;
  });
  for (auto& [name, job] : jobs_) {
    const bool failed = std::any_of(job.machines.begin(), job.machines.end(),
                                    [](const auto& machine) { return machine->dead(); });
    if (failed) end(job, "node failure");
  }
  if (away() || !master_.up()) return;
  for (auto& [name, job] : jobs_) send_report(name, job);
  // Pilots that the master has and the engine does not list.
  for (const auto& [name, pilot] : master_.core()->pilots()) {
    const bool confirmed = pilot.phase != PilotPhase::kSubmitted && !pilot.job.empty();
    if (confirmed && !jobs_.contains(name))
      master_.submit(core::PilotState{.pool = pilot.pool, .name = name, .phase = PilotPhase::kEnded});
  }
}

void BatchEngine::send_report(const std::string& name, const BatchJob& job) {
  core::PilotState state{.pool = job.pool,
                         .name = name,
                         .phase = job.phase,
                         .job = "job of " + name,
                         .reason = job.reason,
                         .until = job.until};
  if (job.mistaken) state.phase = PilotPhase::kEnded;
  master_.submit(std::move(state));
}

BatchEngine::BatchJob* BatchEngine::some_running() {
  std::vector<BatchJob*> running;
  for (auto& [name, job] : jobs_) {
    if (job.phase == PilotPhase::kRunning) running.push_back(&job);
  }
  return running.empty() ? nullptr : running[engine_.random().below(running.size())];
}

void BatchEngine::outage(Duration duration) {
  engine_.trace("the engine is away");
  away_until_ = std::max(away_until_, engine_.now() + duration);
}

void BatchEngine::refuse(Duration duration) {
  engine_.trace("the engine refuses submissions");
  refuse_until_ = std::max(refuse_until_, engine_.now() + duration);
}

void BatchEngine::preempt_job() {
  if (const BatchJob* const job = some_running()) preempt(*job);
}

void BatchEngine::preempt(const BatchJob& job) {
  engine_.trace("the engine preempts a pilot");
  for (const auto& machine : job.machines) {
    machine->stop_agent(minutes(5), seconds(1));
    engine_.after(engine_.between(seconds(1), minutes(2)), [machine] { machine->die(); });
  }
}

void BatchEngine::end_job() {
  if (BatchJob* const job = some_running()) end(*job, "time limit");
}

void BatchEngine::lose_job() {
  BatchJob* const job = some_running();
  if (!job) return;
  engine_.trace("the engine reports a running pilot as ended");
  job->mistaken = true;
  engine_.after(seconds(3), [this, machines = job->machines] {
    for (auto& [name, one] : jobs_) {
      if (one.machines == machines) one.mistaken = false;
    }
  });
}

}  // namespace det::sim
