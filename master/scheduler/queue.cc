// Index of the requests: a line for each shape, in it the users by share, in each the jobs by rank. Victims
// have the same order and are read from its end. A job is in an index ("listed", "shown") only while it has
// an eligible request or a potential victim there.
#include "master/scheduler/queue.h"

#include <algorithm>

namespace det::scheduler {
namespace {

/// Replaces weights that are not positive, to avoid a division by zero.
constexpr double kMinWeight = 1e-9;

}  // namespace

JobState* Queue::find(JobKey id) {
  auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : &it->second;
}

UserState& Queue::user(UserId id) {
  // Users matter to fair_share only. Under other policies one user owns all jobs, and the user level of the
  // index is a single element.
  if (rules_.policy != Policy::kFairShare) id = UserId{};
  auto [it, fresh] = users_.try_emplace(id.value);
  UserState& user = it->second;
  if (fresh) {
    user.rank = {0, id.value, &user};
    auto weight = rules_.user_weights.find(id);
    user.weight = weight == rules_.user_weights.end() ? 1 : std::max(weight->second, kMinWeight);
  }
  return user;
}

/// Takes the job's slots off its user, and removes a user without jobs.
void Queue::leave_user(JobState& job) {
  UserState& user = *job.user;
  user.used -= job.used + job.promised;
  rank(user);
  if (--user.jobs == 0) users_.erase(user.rank.id);
}

JobState& Queue::put(const Job& job) {
  auto [it, fresh] = jobs_.try_emplace(job.id);
  JobState& state = it->second;
  // The user, the weight and the queue order may all change: the job leaves the indexes and enters again.
  if (!fresh) {
    hide(state);
    leave_user(state);
    leave_quotas(state);
  }
  state.job = job;
  if (!(job.weight > 0)) state.job.weight = kMinWeight;
  state.gone = false;
  state.user = &user(job.user);
  ++state.user->jobs;
  state.user->used += state.used + state.promised;
  join_quotas(state);
  show(state);
  relist_peers(state);
  return state;
}

void Queue::forget(JobState& job) {
  hide(job);
  leave_user(job);
  leave_quotas(job);
  jobs_.erase(job.job.id);
}

static bool is_of(const Job& job, const QuotaKey& key) {
  return (key.scope == QuotaKey::Scope::kUser ? job.user.value : job.workspace) == key.id;
}

void Queue::put_quota(const Quota& quota) {
  auto [it, fresh] = quotas_.try_emplace(quota.key);
  QuotaState& state = it->second;
  if (!fresh && state.quota == quota) return;
  state.quota = quota;
  for (auto& [id, job] : jobs_) {
    if (!fresh) break;
    if (!is_of(job.job, quota.key)) continue;
    job.quotas[static_cast<std::size_t>(quota.key.scope)] = &state;
    state.jobs.emplace(id, &job);
    state.taken += job.held + job.promised;
  }
  relist(state);
}

void Queue::remove_quota(const QuotaKey& key) {
  auto gone = quotas_.extract(key);
  if (gone.empty()) return;
  QuotaState& state = gone.mapped();
  for (auto& [id, job] : state.jobs) job->quotas[static_cast<std::size_t>(key.scope)] = nullptr;
  relist(state);
}

void Queue::join_quotas(JobState& job) {
  if (quotas_.empty()) return;
  const QuotaKey keys[] = {{QuotaKey::Scope::kUser, job.job.user.value},
                           {QuotaKey::Scope::kWorkspace, job.job.workspace}};
  for (std::size_t i = 0; i < job.quotas.size(); ++i) {
    const auto found = quotas_.find(keys[i]);
    if (found == quotas_.end()) continue;
    job.quotas[i] = &found->second;
    found->second.jobs.emplace(job.job.id, &job);
  }
  count(job, job.held + job.promised);
}

void Queue::leave_quotas(JobState& job) {
  count(job, -job.held - job.promised);
  for (QuotaState*& quota : job.quotas) {
    if (!quota) continue;
    quota->jobs.erase(job.job.id);
    relist(*std::exchange(quota, nullptr));
  }
}

void Queue::count(JobState& job, int slots) {
  for (QuotaState* quota : job.quotas) {
    if (quota) quota->taken += slots;
  }
}

void Queue::relist(QuotaState& quota) {
  for (auto& [id, job] : quota.jobs) {
    for (auto& [shape, line] : job->waiting) relist(*job, shape, line);
  }
}

void Queue::relist_peers(JobState& job) {
  for (QuotaState* quota : job.quotas) {
    if (quota) relist(*quota);
  }
}

double Queue::share_of(const UserState& user) const {
  return rules_.policy == Policy::kFairShare ? user.used / user.weight : 0;
}

double Queue::share_of(const JobState& job) const {
  switch (rules_.policy) {
    case Policy::kPriority:
      return 0;
    case Policy::kFairShare:
      return (job.used + job.promised) / job.job.weight;
    case Policy::kRoundRobin:
      return job.running + job.promised_count;
  }
  return 0;
}

/// Moves a user in all its lines when its share has changed.
void Queue::rank(UserState& user) {
  const double share = share_of(user);
  if (share == user.rank.share) return;
  UserRank to = user.rank;
  to.share = share;
  // Both are sorted by shape.
  for (auto line = lines_.begin(); const auto& [shape, jobs] : user.waiting) {
    while (line->first != shape) ++line;
    line->second.move(user.rank, to);
  }
  if (!user.victims.empty()) victims_.move(user.rank, to);
  user.rank = to;
}

void Queue::rank(JobState& job) {
  move(job);
  rank(*job.user);
}

/// Moves a job in the indexes of its user when its share has changed, and lists or unlists its victims.
void Queue::move(JobState& job) {
  UserState& user = *job.user;
  if (job.victims_entry && job.victims.empty()) hide_victims(job);
  if (const double share = share_of(job); share != job.rank.share) {
    job.rank.share = share;
    // Node handles keep the memory of the entry.
    const auto move = [&](std::set<JobRank>& jobs, JobEntry& entry) {
      auto node = jobs.extract(*entry);
      node.value().share = share;
      entry = jobs.insert(std::move(node)).position;
    };
    for (auto& [shape, line] : job.waiting) {
      if (line.entry) move(user.waiting.find(shape)->second, line.entry);
    }
    if (job.victims_entry) move(user.victims, job.victims_entry);
  }
  if (!job.victims_entry && !job.victims.empty()) show_victims(job);
}

/// Inserts a job into the line of a shape, and its user with the first job.
void Queue::list(JobState& job, const Shape& shape, JobState::Line& line) {
  UserState& user = *job.user;
  auto& jobs = user.waiting[shape];
  if (jobs.empty()) lines_[shape].insert(user.rank);
  line.entry = jobs.insert(job.rank).first;
}

/// Undoes `list`.
void Queue::unlist(JobState& job, const Shape& shape, JobState::Line& line) {
  UserState& user = *job.user;
  auto jobs = user.waiting.find(shape);
  jobs->second.erase(*std::exchange(line.entry, std::nullopt));
  if (!jobs->second.empty()) return;
  user.waiting.erase(jobs);
  auto users = lines_.find(shape);
  users->second.erase(user.rank);
  if (users->second.empty()) lines_.erase(users);
}

/// Lists or unlists a job after a change of its line or its sums.
void Queue::relist(JobState& job, const Shape& shape, JobState::Line& line) {
  const bool wants = job.wants(shape, line);
  if (wants && !line.entry) list(job, shape, line);
  if (!wants && line.entry) unlist(job, shape, line);
}

void Queue::show_victims(JobState& job) {
  UserState& user = *job.user;
  if (user.victims.empty()) victims_.insert(user.rank);
  job.victims_entry = user.victims.insert(job.rank).first;
}

void Queue::hide_victims(JobState& job) {
  UserState& user = *job.user;
  user.victims.erase(*std::exchange(job.victims_entry, std::nullopt));
  if (user.victims.empty()) victims_.erase(user.rank);
}

void Queue::hide(JobState& job) {
  for (auto& [shape, line] : job.waiting) {
    if (line.entry) unlist(job, shape, line);
  }
  if (job.victims_entry) hide_victims(job);
}

void Queue::show(JobState& job) {
  rank(*job.user);
  job.rank.job = &job;
  job.rank.key = {job.job.priority, job.job.position, job.job.id};
  job.rank.share = share_of(job);
  for (auto& [shape, line] : job.waiting) {
    if (job.wants(shape, line)) list(job, shape, line);
  }
  if (!job.victims.empty()) show_victims(job);
}

void Queue::push(JobState& job, const Shape& shape, TaskKey task) {
  JobState::Line& line = job.waiting[shape];
  // Most requests are of new tasks, which come last.
  line.tasks.insert(line.tasks.end(), task);
  relist(job, shape, line);
}

void Queue::pop(JobState& job, const Shape& shape, TaskKey task) {
  auto line = job.waiting.find(shape);
  if (line == job.waiting.end() || line->second.tasks.erase(task) == 0) return;
  tidy(job, line);
}

void Queue::pop_first(JobState& job, const Shape& shape) {
  auto line = job.waiting.find(shape);
  line->second.behind_held = line->second.tasks.erase(line->second.first());
  tidy(job, line);
}

/// Follows the removal of a request from a line.
void Queue::tidy(JobState& job, decltype(JobState::waiting)::iterator line) {
  relist(job, line->first, line->second);
  if (line->second.tasks.empty()) job.waiting.erase(line);
}

void Queue::hold(JobState& job, const Shape& shape) {
  JobState::Line& line = job.waiting.find(shape)->second;
  line.behind_held = std::next(line.first());
  ++line.held;
  relist(job, shape, line);
  // A promise counts like an allocation: otherwise the next request of the job would precede those of users
  // and jobs with a smaller share.
  const auto promise = [&](JobState& of) {
    of.promised += shape.slots;
    ++of.promised_count;
  };
  if (job.is_limited()) return update(job, promise);
  promise(job);
  job.user->used += shape.slots;
  rank(*job.user);
  unranked_.push_back(&job);
}

void Queue::rank_holders(const UserState& user) {
  std::erase_if(unranked_, [&](JobState* job) {
    if (job->user != &user) return false;
    move(*job);
    return true;
  });
}

void Queue::rank_holders() {
  for (JobState* job : unranked_) move(*job);
  unranked_.clear();
}

void Queue::release(const std::vector<std::pair<JobState*, Shape>>& holders) {
  unranked_.clear();
  for (const auto& [job, shape] : holders) {
    job->promised -= shape.slots;
    count(*job, -shape.slots);
    --job->promised_count;
    job->user->used -= shape.slots;
  }
  // All sums are final before the first rank is computed, so each job and user moves once at most.
  for (const auto& [job, shape] : holders) {
    rank(*job);
    JobState::Line& line = job->waiting.find(shape)->second;
    --line.held;
    if (!job->is_limited()) {
      relist(*job, shape, line);
    } else {
      hide(*job);
      show(*job);
      relist_peers(*job);
    }
  }
}

/// Changes the slots in use of a job and its position among the victims. The lines of waiting requests are
/// not updated: lend and give_back come in pairs, and nothing reads the lines in between.
void Queue::reweigh(JobState& job, int slots) {
  UserState& user = *job.user;
  if (job.victims_entry) user.victims.erase(*std::exchange(job.victims_entry, std::nullopt));
  const auto known = victims_.lower_bound(user.rank);
  if (known != victims_.end() && known->user == &user) victims_.erase(known);
  job.used += slots;
  user.used += slots;
  job.rank.share = share_of(job);
  user.rank.share = share_of(user);
  if (!job.victims.empty()) job.victims_entry = user.victims.insert(job.rank).first;
  if (!user.victims.empty()) victims_.insert(user.rank);
}

void Queue::lend(JobState& job, TaskKey task, int slots) {
  job.victims.erase(task);
  reweigh(job, -slots);
}

void Queue::give_back(JobState& job, TaskKey task, int slots) {
  job.victims.insert(task);
  reweigh(job, slots);
}

}  // namespace det::scheduler
