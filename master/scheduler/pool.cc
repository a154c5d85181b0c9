// Changes of a pool, and the public functions of Scheduler and Image.
#include "master/scheduler/pool.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "master/scheduler/scheduler.h"

namespace det::scheduler {

/// Applies `change` to every agent of an allocation and updates the indexes.
template <typename Change>
void Pool::change_nodes(RunningState& state, const Change& change) {
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    Node& node = *state.nodes[i];
    change(node, state.running->parts[i]);
    fleet.file(node);
  }
}

/// Sums over the lines of a job. Each line is a sorted set, so its first task is the smallest.
static Scheduler::Standing sum(const JobState& job) {
  Scheduler::Standing all{.running = job.live, .held = job.held};
  for (const auto& [shape, line] : job.waiting) {
    const std::set<TaskKey>& tasks = line.tasks;
    if (tasks.empty()) continue;
    const TaskKey first(*tasks.begin());
    if (all.requests == 0 || first < all.first) all.first = first;
    all.requests += static_cast<int>(tasks.size());
    all.slots += shape.slots * static_cast<int>(tasks.size());
  }
  return all;
}

void Pool::load(const Snapshot& snapshot) {
  // Allocations before requests: put_request ignores a task that has an allocation.
  for (const Quota& quota : snapshot.quotas) queue.put_quota(quota);
  for (const Agent& agent : snapshot.agents) put_agent(agent);
  for (const Job& job : snapshot.jobs) put_job(job);
  for (const Running& one : snapshot.running) start(one);
  for (const Request& request : snapshot.requests) put_request(request);
}

Image::State Pool::image() {
  // Agents change seldom compared with images: one vector serves all images until then.
  if (!agents_) {
    auto all = std::make_shared<std::vector<Agent>>();
    for (const auto& [id, node] : fleet.nodes()) {
      if (node.known) all->push_back(node.agent);
    }
    agents_ = std::move(all);
  }
  std::vector<Quota> quotas;
  for (const auto& [key, state] : queue.quotas()) quotas.push_back(state.quota);
  return {rules, agents_, std::move(quotas), jobs_.share(), waiting.share(), runs_.share()};
}

Snapshot Image::snapshot() const {
  Snapshot all{.rules = state_->rules,
               .agents = *state_->agents,
               .jobs = {},
               .requests = {},
               .running = {},
               .quotas = state_->quotas};
  state_->jobs.each([&](const Job& job) { all.jobs.push_back(job); });
  state_->waiting.each([&](const Request& request) { all.requests.push_back(request); });
  state_->running.each([&](const State::Runs& one) {
    all.running.push_back(*one.running);
    all.running.back().terminating = one.terminating;
  });
  // The tables are hashed. Sorting makes snapshots, and decisions on them, independent of the history.
  std::sort(all.jobs.begin(), all.jobs.end(), [](const Job& a, const Job& b) { return a.id < b.id; });
  std::sort(all.requests.begin(), all.requests.end(),
            [](const Request& a, const Request& b) { return a.task < b.task; });
  std::sort(all.running.begin(), all.running.end(),
            [](const Running& a, const Running& b) { return a.task < b.task; });
  return all;
}

void Pool::put_agent(Agent agent) {
  agents_.reset();
  Node& node = fleet.node(agent.id);
  node.agent = std::move(agent);
  node.known = true;
  fleet.file(node);
}

void Pool::remove_agent(const AgentId& id) {
  Node* node = fleet.find(id);
  if (!node) return;
  agents_.reset();
  node->known = false;
  fleet.file(*node);
  fleet.forget_if_empty(id);
}

void Pool::put_job(const Job& job) {
  // A new priority changes the level of the job's allocations on their agents.
  const JobState* known = queue.find(job.id);
  const int before = Fleet::level_of(known ? known->job.priority : job.priority);
  JobState& state = queue.put(job);
  jobs_.put(job.id.packed(), state.job);
  if (rules.policy != Policy::kPriority || before == Fleet::level_of(job.priority)) return;
  std::vector<std::pair<Node*, const Part*>> parts;
  for (TaskKey task : state.victims) {
    const RunningState& its = running.at(task);
    for (std::size_t i = 0; i < its.nodes.size(); ++i)
      parts.emplace_back(its.nodes[i], &its.running->parts[i]);
  }
  fleet.relevel(parts, before, Fleet::level_of(job.priority));
}

void Pool::forget(JobState& job) {
  jobs_.erase(job.job.id.packed());
  queue.forget(job);
}

void Pool::remove_job(JobKey id) {
  JobState* job = queue.find(id);
  if (!job) return;
  for (const auto& [shape, line] : job->waiting) {
    for (TaskKey task : line.tasks) waiting.erase(task.packed());
  }
  // Allocations of the job stay, and remain potential victims. The last `end` removes the job.
  queue.hide(*job);
  job->waiting.clear();
  queue.show(*job);
  job->gone = true;
  if (job->live == 0) forget(*job);
}

int Pool::number_of(const std::vector<AgentId>& agents) {
  if (const auto known = excluded_numbers_.find(agents); known != excluded_numbers_.end())
    return known->second;
  if (excluded_numbers_.size() >= max_numbers_) forget_excluded_sets();
  if (free_numbers_.empty()) {
    free_numbers_.push_back(static_cast<int>(excluded_sets_.size()));
    excluded_sets_.emplace_back();
  }
  const int number = free_numbers_.back();
  free_numbers_.pop_back();
  excluded_sets_[static_cast<std::size_t>(number)] = agents;
  excluded_numbers_.emplace(agents, number);
  return number;
}

void Pool::forget_excluded_sets() {
  std::set<int> used{0};
  for (const auto& [id, job] : queue.jobs())
    for (const auto& [shape, line] : job.waiting) used.insert(shape.excluded);
  std::erase_if(excluded_numbers_, [&](const auto& one) {
    if (used.contains(one.second)) return false;
    free_numbers_.push_back(one.second);
    return true;
  });
  // Twice as many as are in use: the cost of a look at all jobs is spread over as many new sets.
  max_numbers_ = std::max<std::size_t>(16, 2 * used.size());
}

Shape Pool::shape_of(const Request& request) {
  return {.slots = std::max(request.slots, 0),
          .single_node = request.single_node && request.slots > 1,
          .preemptible = request.preemptible,
          .excluded = request.excluded.empty() ? 0 : number_of(request.excluded)};
}

void Pool::put_request(const Request& request) {
  JobState* job = queue.find(request.job);
  if (!job || job->gone || running.contains(request.task)) return;
  withdraw(request.task);
  waiting.put(request.task.packed(), request);
  queue.push(*job, shape_of(request), request.task);
}

void Pool::withdraw(TaskKey task) {
  const Request* request = waiting.find(task.packed());
  if (!request) return;
  queue.pop(*queue.find(request->job), shape_of(*request), task);
  waiting.erase(task.packed());
}

void Pool::start(Running started) {
  JobState* job = queue.find(started.job);
  if (!job || running.contains(started.task)) return;
  withdraw(started.task);
  std::vector<Node*> nodes;
  for (const Part& part : started.parts) nodes.push_back(&fleet.node(part.agent));
  begin(*job, std::move(started), std::move(nodes));
}

void Pool::start(JobState& job, const Shape& shape, Running started, std::vector<Node*> nodes) {
  queue.pop_first(job, shape);
  waiting.erase(started.task.packed());
  begin(job, std::move(started), std::move(nodes));
}

/// Adds the state of an allocation to `running`, to the sums of its job and to its agents.
void Pool::begin(JobState& job, Running started, std::vector<Node*> nodes) {
  const TaskKey task = started.task;
  RunningState& state = running[task];
  state.preemptible = started.preemptible;
  state.terminating = started.terminating;
  state.running = std::make_shared<const Running>(std::move(started));
  runs_.put(task.packed(), {state.running, state.terminating});
  state.nodes = std::move(nodes);
  state.job = &job;
  for (const Part& part : state.running->parts) state.slots += static_cast<int>(part.slots.size());
  queue.update(job, [&](JobState& of) {
    ++of.live;
    of.held += state.slots;
    if (!state.terminating) {
      of.used += state.slots;
      ++of.running;
    }
    if (state.is_victim()) of.victims.insert(of.victims.end(), task);
  });
  // `parts` and `state` have stable addresses: a shared immutable object, and a node of an unordered_map.
  change_nodes(state, [&](Node& node, const Part& part) {
    node.here.push_back({&state, &part, &job, state.slots});
  });
}

void Pool::terminate(RunningState& state) {
  if (state.terminating) return;
  const TaskKey task = state.running->task;
  // The slots leave the share at once, but stay in `held`: max_slots counts them until the end.
  queue.update(*state.job, [&](JobState& of) {
    of.used -= state.slots;
    --of.running;
    of.victims.erase(task);
  });
  state.terminating = true;
  runs_.put(task.packed(), {state.running, true});
  change_nodes(state, [](Node&, const Part&) {});
}

void Pool::end(TaskKey task) {
  auto it = running.find(task);
  if (it == running.end()) return;
  RunningState& state = it->second;
  JobState& job = *state.job;
  queue.update(job, [&](JobState& of) {
    --of.live;
    of.held -= state.slots;
    if (state.terminating) return;
    of.used -= state.slots;
    --of.running;
    of.victims.erase(task);
  });
  change_nodes(state, [&](Node& node, const Part& part) {
    std::erase_if(node.here, [&](const Node::Holding& holding) { return holding.part == &part; });
  });
  // An agent that was removed earlier goes with its last allocation.
  std::vector<AgentId> unknown;
  for (const Node* node : state.nodes) {
    if (!node->known) unknown.push_back(node->agent.id);
  }
  for (const AgentId& agent : unknown) fleet.forget_if_empty(agent);
  runs_.erase(task.packed());
  running.erase(it);
  if (job.gone && job.live == 0) forget(job);
}

Scheduler::Scheduler(Rules rules) : pool_(std::make_unique<Pool>(std::move(rules))) {}
Scheduler::Scheduler(const Snapshot& snapshot) : Scheduler(snapshot.rules) { pool_->load(snapshot); }
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;
Scheduler::~Scheduler() = default;

void Scheduler::put_agent(Agent agent) { pool_->put_agent(std::move(agent)); }
void Scheduler::remove_agent(const AgentId& agent) { pool_->remove_agent(agent); }
void Scheduler::put_job(Job job) { pool_->put_job(job); }
void Scheduler::put_quota(const Quota& quota) { pool_->queue.put_quota(quota); }
void Scheduler::remove_quota(const QuotaKey& key) { pool_->queue.remove_quota(key); }
int Scheduler::held(const QuotaKey& key) const {
  const auto found = pool_->queue.quotas().find(key);
  return found == pool_->queue.quotas().end() ? 0 : found->second.taken;
}
void Scheduler::remove_job(JobKey job) { pool_->remove_job(job); }
void Scheduler::put_request(const Request& request) { pool_->put_request(request); }
void Scheduler::withdraw(TaskKey task) { pool_->withdraw(task); }
void Scheduler::started(Running running) { pool_->start(std::move(running)); }
void Scheduler::ended(TaskKey task) { pool_->end(task); }
void Scheduler::terminating(TaskKey task) {
  if (auto it = pool_->running.find(task); it != pool_->running.end()) pool_->terminate(it->second);
}

Plan Scheduler::decide() {
  // Terminates: each start removes a request, each preemption terminates an allocation, and neither comes
  // back within one decision.
  Plan plan;
  while (walk(*pool_, plan)) {
  }
  return plan;
}

const std::vector<Hold>& Scheduler::holds() const { return pool_->holds; }
Image Scheduler::image() const { return Image(std::make_shared<const Image::State>(pool_->image())); }

std::vector<Demand> Scheduler::demand(int limit) const {
  std::set<TaskKey> served;
  for (const Hold& hold : pool_->holds) {
    if (hold.why != Hold::Why::kReserved) served.insert(hold.task);
  }
  std::vector<std::tuple<UserRank, JobRank, Demand>> found;
  std::map<const QuotaState*, int> taken;  // by the requests that were visited
  const auto exceeds_quota = [&](const JobState& job, int slots) {
    if (slots == 0) return false;
    for (const QuotaState* quota : job.quotas) {
      if (quota && !quota->admits(taken[quota] + slots)) return true;
    }
    for (const QuotaState* quota : job.quotas) {
      if (quota) taken[quota] += slots;
    }
    return false;
  };
  for (const auto& [shape, users] : pool_->queue.lines()) {
    int left = limit;
    for (const UserRank& user : users) {
      for (const JobRank& rank : user.user->waiting.find(shape)->second) {
        const JobState& job = *rank.job;
        int slots = job.held;
        for (const TaskKey task : job.waiting.find(shape)->second.tasks) {
          slots += shape.slots;
          if (left == 0 || (job.job.max_slots && slots > *job.job.max_slots && shape.slots > 0) ||
              exceeds_quota(job, shape.slots))
            break;
          if (served.contains(task)) continue;
          --left;
          found.emplace_back(user, rank, Demand{task, shape.slots, shape.single_node});
        }
        if (left == 0) break;
      }
      if (left == 0) break;
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::vector<Demand> demand;
  for (const auto& [user, job, one] : found) demand.push_back(one);
  return demand;
}

const Rules& Scheduler::rules() const { return pool_->rules; }
int Scheduler::queued() const { return static_cast<int>(pool_->waiting.size()); }
bool Scheduler::waits(TaskKey task) const { return pool_->waiting.contains(task.packed()); }

std::vector<std::pair<JobKey, Scheduler::Standing>> Scheduler::standings() const {
  std::vector<std::pair<JobKey, Standing>> found;
  for (const auto& [id, job] : pool_->queue.jobs()) {
    if (const Standing its = sum(job); its.requests > 0 || its.running > 0)
      found.emplace_back(job.job.id, its);
  }
  return found;
}

Scheduler::Standing Scheduler::standing(JobKey id) const {
  const JobState* job = pool_->queue.find(id);
  return job ? sum(*job) : Standing();
}

Plan schedule(const Snapshot& snapshot) { return Scheduler(snapshot).decide(); }

}  // namespace det::scheduler
