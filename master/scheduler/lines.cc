// Owns the index of those who wait: for each shape a line, in it users by their share, in it jobs by theirs.
// And the same order, read from its end, of those who may be asked to leave.
#include <algorithm>

#include "master/scheduler/pool.h"

namespace det::scheduler {
namespace {

constexpr double kLeastWeight = 1e-9;  // a weight is > 0; what is not must not divide by zero

}  // namespace

Shape shape_of(const Request& request) {
  return {std::max(request.slots, 0), request.single_node && request.slots > 1, request.preemptible};
}

JobState* Queue::find(ExperimentId id) {
  auto it = jobs_.find(id.value);
  return it == jobs_.end() ? nullptr : &it->second;
}

UserState& Queue::user(UserId id) {
  // Only fair shares look at users; elsewhere all jobs are of one.
  if (rules_.policy != Policy::kFairShare) id = UserId{};
  auto [it, fresh] = users_.try_emplace(id.value);
  UserState& user = it->second;
  if (fresh) {
    user.rank = {0, id.value, &user};
    auto weight = rules_.user_weights.find(id);
    user.weight = weight == rules_.user_weights.end() ? 1 : std::max(weight->second, kLeastWeight);
  }
  return user;
}

void Queue::leave_user(JobState& job) {
  UserState& user = *job.user;
  user.used -= job.used + job.promised;
  rank(user);
  if (--user.jobs == 0) users_.erase(user.rank.id);
}

JobState& Queue::put(const Job& job) {
  auto [it, fresh] = jobs_.try_emplace(job.id.value);
  JobState& state = it->second;
  if (!fresh) {
    hide(state);
    leave_user(state);
  }
  state.job = job;
  if (!(job.weight > 0)) state.job.weight = kLeastWeight;
  state.gone = false;
  state.user = &user(job.user);
  ++state.user->jobs;
  state.user->used += state.used + state.promised;
  show(state);
  return state;
}

void Queue::forget(JobState& job) {
  hide(job);
  leave_user(job);
  jobs_.erase(job.job.id.value);
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

/// A user's place in all its lines follows its share.
void Queue::rank(UserState& user) {
  const double share = share_of(user);
  if (share == user.rank.share) return;
  const auto move = [&](std::set<UserRank>& users) {
    auto entry = users.extract(user.rank);
    entry.value().share = share;
    users.insert(std::move(entry));
  };
  for (const auto& [shape, jobs] : user.waiting) move(lines_.find(shape)->second);
  if (!user.victims.empty()) move(victims_);
  user.rank.share = share;
}

void Queue::list(UserState& user, const Shape& shape, const JobRank& rank) {
  auto& jobs = user.waiting[shape];
  if (jobs.empty()) lines_[shape].insert(user.rank);
  jobs.insert(rank);
}

void Queue::hide(JobState& job) {
  UserState& user = *job.user;
  for (const Shape& shape : job.shown) {
    auto jobs = user.waiting.find(shape);
    jobs->second.erase(job.rank);
    if (!jobs->second.empty()) continue;
    user.waiting.erase(jobs);
    auto line = lines_.find(shape);
    line->second.erase(user.rank);
    if (line->second.empty()) lines_.erase(line);
  }
  job.shown.clear();
  if (std::exchange(job.shown_victims, false)) {
    user.victims.erase(job.rank);
    if (user.victims.empty()) victims_.erase(user.rank);
  }
}

void Queue::show(JobState& job) {
  UserState& user = *job.user;
  rank(user);
  job.rank.job = &job;
  job.rank.key = {job.job.priority, job.job.position, job.job.id.value};
  job.rank.share = share_of(job);
  for (const auto& [shape, trials] : job.waiting) {
    if (!job.within_limit(shape.slots)) continue;
    list(user, shape, job.rank);
    job.shown.push_back(shape);
  }
  if (!job.victims.empty()) {
    if (user.victims.empty()) victims_.insert(user.rank);
    user.victims.insert(job.rank);
    job.shown_victims = true;
  }
}

void Queue::push(JobState& job, const Shape& shape, std::int64_t trial) {
  auto& trials = job.waiting[shape];
  trials.insert(trial);
  if (trials.size() > 1 || !job.within_limit(shape.slots)) return;
  list(*job.user, shape, job.rank);
  job.shown.push_back(shape);
}

void Queue::pop(JobState& job, const Shape& shape, std::int64_t trial) {
  auto trials = job.waiting.find(shape);
  if (trials == job.waiting.end() || trials->second.erase(trial) == 0 || !trials->second.empty()) return;
  hide(job);
  job.waiting.erase(trials);
  show(job);
}

void Queue::promise(JobState& job, int slots, int count) {
  const auto change = [&](JobState& of) {
    of.promised += slots;
    of.promised_count += count;
  };
  if (job.job.max_slots) return update(job, change);  // its right to go on may depend on it
  change(job);
  UserState& user = *job.user;
  user.used += slots;
  const double share = share_of(job);
  if (share != job.rank.share) {
    const auto move = [&](std::set<JobRank>& jobs) {
      auto entry = jobs.extract(job.rank);
      entry.value().share = share;
      jobs.insert(std::move(entry));
    };
    for (const Shape& shape : job.shown) move(user.waiting.find(shape)->second);
    if (job.shown_victims) move(user.victims);
    job.rank.share = share;
  }
  rank(user);
}

void Queue::reweigh(JobState& job, int slots) {
  UserState& user = *job.user;
  if (job.shown_victims) user.victims.erase(job.rank);
  victims_.erase(user.rank);
  job.used += slots;
  user.used += slots;
  job.rank.share = share_of(job);
  user.rank.share = share_of(user);
  job.shown_victims = !job.victims.empty();
  if (job.shown_victims) user.victims.insert(job.rank);
  if (!user.victims.empty()) victims_.insert(user.rank);
}

void Queue::lend(JobState& job, std::int64_t trial, int slots) {
  job.victims.erase(trial);
  reweigh(job, -slots);
}

void Queue::give_back(JobState& job, std::int64_t trial, int slots) {
  job.victims.insert(trial);
  reweigh(job, slots);
}

}  // namespace det::scheduler
