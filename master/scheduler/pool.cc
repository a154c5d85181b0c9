// Owns the changes of a pool, and the public face of the scheduler.
#include "master/scheduler/pool.h"

#include <algorithm>

#include "master/scheduler/scheduler.h"

namespace det::scheduler {

/// The agents that hold `state` are changed and filed.
template <typename Change>
void Pool::change_nodes(RunningState& state, const Change& change) {
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    Node& node = *state.nodes[i];
    change(node, state.running.parts[i]);
    fleet.file(node);
  }
}

static Scheduler::Waiting sum(const JobState& job) {
  Scheduler::Waiting all;
  for (const auto& [shape, line] : job.waiting) {
    const std::set<std::int64_t>& trials = line.trials;
    if (trials.empty()) continue;
    const TrialId first(*trials.begin());
    if (all.requests == 0 || first < all.first) all.first = first;
    all.requests += static_cast<int>(trials.size());
    all.slots += shape.slots * static_cast<int>(trials.size());
  }
  return all;
}

void Pool::load(const Snapshot& snapshot) {
  for (const Agent& agent : snapshot.agents) put_agent(agent);
  for (const Job& job : snapshot.jobs) put_job(job);
  for (const Running& one : snapshot.running) start(one);
  for (const Request& request : snapshot.requests) put_request(request);
}

Snapshot Pool::snapshot() const {
  Snapshot all{.rules = rules, .agents = {}, .jobs = {}, .requests = {}, .running = {}};
  for (const auto& [id, node] : fleet.nodes()) {
    if (node.known) all.agents.push_back(node.agent);
  }
  for (const auto& [id, job] : const_cast<Queue&>(queue).jobs()) all.jobs.push_back(job.job);
  for (const auto& [trial, request] : waiting) all.requests.push_back(request);
  for (const auto& [trial, state] : running) all.running.push_back(state.running);
  std::sort(all.requests.begin(), all.requests.end(),
            [](const Request& a, const Request& b) { return a.trial < b.trial; });
  std::sort(all.running.begin(), all.running.end(),
            [](const Running& a, const Running& b) { return a.trial < b.trial; });
  return all;
}

void Pool::put_agent(Agent agent) {
  Node& node = fleet.node(agent.id);
  node.agent = std::move(agent);
  node.known = true;
  fleet.file(node);
}

void Pool::remove_agent(const AgentId& id) {
  Node* node = fleet.find(id);
  if (!node) return;
  node->known = false;
  fleet.file(*node);
  fleet.forget_if_empty(id);
}

void Pool::put_job(const Job& job) {
  const JobState* known = queue.find(job.id);
  const int before = Fleet::level_of(known ? known->job.priority : job.priority);
  JobState& state = queue.put(job);
  if (rules.policy != Policy::kPriority || before == Fleet::level_of(job.priority)) return;
  std::vector<std::pair<Node*, const Part*>> parts;
  for (std::int64_t trial : state.victims) {
    const RunningState& its = running.at(trial);
    for (std::size_t i = 0; i < its.nodes.size(); ++i) parts.emplace_back(its.nodes[i], &its.running.parts[i]);
  }
  fleet.relevel(parts, before, Fleet::level_of(job.priority));
}

void Pool::remove_job(ExperimentId id) {
  JobState* job = queue.find(id);
  if (!job) return;
  for (const auto& [shape, line] : job->waiting) {
    for (std::int64_t trial : line.trials) waiting.erase(trial);
  }
  queue.hide(*job);
  job->waiting.clear();
  queue.show(*job);
  job->gone = true;
  if (job->live == 0) queue.forget(*job);
}

void Pool::put_request(const Request& request) {
  JobState* job = queue.find(request.job);
  if (!job || job->gone || running.contains(request.trial.value)) return;
  withdraw(request.trial);
  waiting[request.trial.value] = request;
  queue.push(*job, shape_of(request), request.trial.value);
}

void Pool::withdraw(TrialId trial) {
  auto it = waiting.find(trial.value);
  if (it == waiting.end()) return;
  queue.pop(*queue.find(it->second.job), shape_of(it->second), trial.value);
  waiting.erase(it);
}

void Pool::start(Running started) {
  JobState* job = queue.find(started.job);
  if (!job || running.contains(started.trial.value)) return;
  withdraw(started.trial);
  std::vector<Node*> nodes;
  for (const Part& part : started.parts) nodes.push_back(&fleet.node(part.agent));
  begin(*job, std::move(started), std::move(nodes));
}

void Pool::start(JobState& job, const Shape& shape, Running started, std::vector<Node*> nodes) {
  queue.pop_first(job, shape);
  waiting.erase(started.trial.value);
  begin(job, std::move(started), std::move(nodes));
}

void Pool::begin(JobState& job, Running started, std::vector<Node*> nodes) {
  RunningState& state = running[started.trial.value];
  state.running = std::move(started);
  state.nodes = std::move(nodes);
  state.job = &job;
  for (const Part& part : state.running.parts) state.slots += static_cast<int>(part.slots.size());
  queue.update(job, [&](JobState& of) {
    ++of.live;
    of.held += state.slots;
    if (!state.running.leaving) {
      of.used += state.slots;
      ++of.running;
    }
    if (state.may_leave()) of.victims.insert(state.running.trial.value);
  });
  change_nodes(state, [&](Node& node, const Part& part) { node.here.push_back({&state, &part}); });
}

void Pool::leave(RunningState& state) {
  if (state.running.leaving) return;
  queue.update(*state.job, [&](JobState& of) {
    of.used -= state.slots;
    --of.running;
    of.victims.erase(state.running.trial.value);
  });
  state.running.leaving = true;
  change_nodes(state, [](Node&, const Part&) {});
}

void Pool::end(TrialId trial) {
  auto it = running.find(trial.value);
  if (it == running.end()) return;
  RunningState& state = it->second;
  JobState& job = *state.job;
  queue.update(job, [&](JobState& of) {
    --of.live;
    of.held -= state.slots;
    if (state.running.leaving) return;
    of.used -= state.slots;
    --of.running;
    of.victims.erase(trial.value);
  });
  change_nodes(state, [&](Node& node, const Part& part) {
    std::erase_if(node.here, [&](const Node::Holding& holding) { return holding.part == &part; });
  });
  for (const Part& part : state.running.parts) {
    if (const Node* node = fleet.find(part.agent); node && !node->known) fleet.forget_if_empty(part.agent);
  }
  running.erase(it);
  if (job.gone && job.live == 0) queue.forget(job);
}

Scheduler::Scheduler(Rules rules) : pool_(std::make_unique<Pool>(std::move(rules))) {}
Scheduler::Scheduler(const Snapshot& snapshot) : Scheduler(snapshot.rules) { pool_->load(snapshot); }
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;
Scheduler::~Scheduler() = default;

void Scheduler::put_rules(Rules rules) {
  Snapshot all = snapshot();
  all.rules = std::move(rules);
  *this = Scheduler(all);
}

void Scheduler::put_agent(Agent agent) { pool_->put_agent(std::move(agent)); }
void Scheduler::remove_agent(const AgentId& agent) { pool_->remove_agent(agent); }
void Scheduler::put_job(Job job) { pool_->put_job(job); }
void Scheduler::remove_job(ExperimentId job) { pool_->remove_job(job); }
void Scheduler::put_request(Request request) { pool_->put_request(request); }
void Scheduler::withdraw(TrialId trial) { pool_->withdraw(trial); }
void Scheduler::started(Running running) { pool_->start(std::move(running)); }
void Scheduler::ended(TrialId trial) { pool_->end(trial); }
void Scheduler::leaving(TrialId trial) {
  if (auto it = pool_->running.find(trial.value); it != pool_->running.end()) pool_->leave(it->second);
}

Plan Scheduler::decide() {
  Plan plan;
  while (walk(*pool_, plan)) {
  }
  return plan;
}

const std::vector<Hold>& Scheduler::holds() const { return pool_->holds; }
Snapshot Scheduler::snapshot() const { return pool_->snapshot(); }

const Rules& Scheduler::rules() const { return pool_->rules; }
int Scheduler::queued() const { return static_cast<int>(pool_->waiting.size()); }
bool Scheduler::waits(TrialId trial) const { return pool_->waiting.contains(trial.value); }

std::map<ExperimentId, Scheduler::Waiting> Scheduler::waiting() const {
  std::map<ExperimentId, Waiting> found;
  for (const auto& [id, job] : pool_->queue.jobs()) {
    if (const Waiting its = sum(job); its.requests > 0) found.emplace(job.job.id, its);
  }
  return found;
}

Scheduler::Waiting Scheduler::waiting(ExperimentId id) const {
  const JobState* job = pool_->queue.find(id);
  return job ? sum(*job) : Waiting();
}

Plan schedule(const Snapshot& snapshot) { return Scheduler(snapshot).decide(); }

}  // namespace det::scheduler
