// Waiting requests and potential victims of a pool, in the order of its policy. Internal to master/scheduler;
// same single thread as the Scheduler.
//
// The sort key of a job changes only inside of Queue::update, or between Queue::hide and Queue::show. Index
// entries that move keep their memory: events arrive by the thousand, and calls of the allocator dominate the
// slowest of them.
#pragma once

#include <algorithm>
#include <array>
#include <boost/container/flat_map.hpp>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "master/scheduler/scheduler.h"

namespace det::scheduler {

struct JobState;
struct JobRank;
/// Place of a job in an index. Valid until the job leaves the index or is moved in it.
using JobEntry = std::optional<std::set<JobRank>::iterator>;

/// The properties that decide where a request fits. Requests of one shape form a line: when the first of them
/// cannot start, the others cannot either.
struct Shape {
  int slots = 0;
  bool single_node = false;  ///< always false for slots <= 1, where it makes no difference
  bool preemptible = true;
  int excluded = 0;  ///< number of the set of excluded agents (Pool::number_of); 0: none
  auto operator<=>(const Shape&) const = default;
};

/// Order of jobs with equal shares.
struct JobOrder {
  int priority = 0;
  std::int64_t position = 0;
  JobKey job;
  auto operator<=>(const JobOrder&) const = default;
};
/// Sort key of a job within its user: the share of the policy, then the queue order.
struct JobRank {
  double share = 0;  ///< slots per weight (fair_share), running allocations (round_robin), 0 (priority)
  JobOrder key;
  JobState* job = nullptr;
  bool operator<(const JobRank& b) const { return std::tie(share, key) < std::tie(b.share, b.key); }
};
/// A set for few elements that often change their position: a sorted vector.
template <typename T>
class SortedVector {
 public:
  bool empty() const { return elements_.empty(); }
  auto begin() const { return elements_.begin(); }
  auto end() const { return elements_.end(); }
  auto rbegin() const { return elements_.rbegin(); }
  auto rend() const { return elements_.rend(); }
  auto lower_bound(const T& value) const {
    return std::lower_bound(elements_.begin(), elements_.end(), value);
  }
  void insert(const T& value) { elements_.insert(lower_bound(value), value); }
  /// Removes an element, which must exist.
  void erase(const T& value) { elements_.erase(lower_bound(value)); }
  void erase(typename std::vector<T>::const_iterator element) { elements_.erase(element); }
  /// Replaces `from`, which must be an element, by `to` at its sorted position.
  void move(const T& from, const T& to) {
    const auto first = elements_.begin();
    const auto old_place = first + (lower_bound(from) - first), place = first + (lower_bound(to) - first);
    if (old_place < place) {
      *std::move(old_place + 1, place, old_place) = to;
    } else {
      std::move_backward(place, old_place, old_place + 1);
      *place = to;
    }
  }

 private:
  std::vector<T> elements_;
};

struct UserState;
/// Sort key of a user.
struct UserRank {
  double share = 0;  ///< slots per weight (fair_share); 0 under the other policies
  std::int64_t id = 0;
  UserState* user = nullptr;
  bool operator<(const UserRank& b) const { return std::tie(share, id) < std::tie(b.share, b.id); }
};
/// A user with at least one job. Under other policies than fair_share one user owns all jobs.
struct UserState {
  UserRank rank;
  double weight = 1;
  int used = 0;  ///< slots of allocations that are not terminating, and of holders
  int jobs = 0;  ///< number of jobs; the user is removed with the last one
  boost::container::flat_map<Shape, std::set<JobRank>> waiting;  ///< jobs with eligible requests, by shape
  std::set<JobRank> victims;                                     ///< jobs with potential victims
};
/// A quota and the jobs that it limits.
struct QuotaState {
  Quota quota;
  int taken = 0;                     ///< slots of allocations, and of holders of this pass
  std::map<JobKey, JobState*> jobs;  ///< the jobs of the user or of the workspace
  bool admits(int slots) const { return quota.elsewhere + taken + slots <= quota.slots; }
};
/// A job, its requests and the sums over its allocations.
struct JobState {
  Job job;
  JobRank rank;
  UserState* user = nullptr;
  std::array<QuotaState*, 2> quotas{};  ///< of its user and of its workspace; null without one
  /// The requests of one shape, by task.
  struct Line {
    std::set<TaskKey> tasks;
    int held = 0;                             ///< holders of this pass; these are the first `held` tasks
    std::set<TaskKey>::iterator behind_held;  ///< the task after them; valid while there are any
    JobEntry entry;                           ///< in UserState::waiting for this shape
    /// The first request that is not a holder.
    auto first() const { return held == 0 ? tasks.begin() : behind_held; }
  };
  boost::container::flat_map<Shape, Line> waiting;
  std::set<TaskKey> victims;  ///< tasks of allocations that may be preempted
  int held = 0;               ///< slots of all allocations, terminating ones included
  int used = 0;               ///< slots of allocations that are not terminating
  int running = 0;            ///< allocations that are not terminating
  int live = 0;               ///< allocations
  int promised = 0;           ///< slots of its holders in this pass
  int promised_count = 0;     ///< number of its holders in this pass
  bool gone = false;          ///< removed; kept until its last allocation has ended
  JobEntry victims_entry;     ///< in UserState::victims
  /// max_slots or a quota bounds the slots of the job.
  bool is_limited() const { return job.max_slots || quotas[0] || quotas[1]; }
  /// Another `slots` slots do not exceed max_slots or a quota.
  bool within_limit(int slots) const {
    if (slots == 0) return true;
    if (job.max_slots && held + promised + slots > *job.max_slots) return false;
    return (!quotas[0] || quotas[0]->admits(slots)) && (!quotas[1] || quotas[1]->admits(slots));
  }
  /// The line has a request that is not a holder and that no limit excludes.
  bool wants(const Shape& shape, const Line& line) const {
    return line.tasks.size() > static_cast<std::size_t>(line.held) && within_limit(shape.slots);
  }
};

/// The waiting requests in the order of the policy, one line for each shape, and the potential victims in the
/// same order. Three levels: users by share, their jobs by share and queue order, the tasks of a job by key.
/// Ranks are up to date outside of the member functions, except between lend and give_back, and except those
/// of jobs with new holders, until rank_holders.
class Queue {
 public:
  /// `rules` must outlive the queue.
  explicit Queue(const Rules& rules) : rules_(rules) {}
  /// Returns the job, or null.
  JobState* find(JobKey id);
  /// Adds a job or replaces its settings. Keeps its requests and sums.
  JobState& put(const Job& job);
  /// Removes a job, which must have no requests and no allocations.
  void forget(JobState& job);
  std::map<JobKey, JobState>& jobs() { return jobs_; }
  /// Adds or replaces a quota, and lists its jobs again.
  void put_quota(const Quota& quota);
  void remove_quota(const QuotaKey& key);
  const std::map<QuotaKey, QuotaState>& quotas() const { return quotas_; }

  /// Takes a job out of all indexes.
  void hide(JobState& job);
  /// Computes the rank of a hidden job and inserts it into the indexes.
  void show(JobState& job);
  /// Adds a request.
  void push(JobState& job, const Shape& shape, TaskKey task);
  /// Removes a request. No effect when the job does not have it.
  void pop(JobState& job, const Shape& shape, TaskKey task);
  /// Removes the first request of the line that is not a holder.
  void pop_first(JobState& job, const Shape& shape);
  /// Applies `change` to the sums and victims of a job and restores the order of all indexes.
  template <typename Change>
  void update(JobState& job, const Change& change) {
    // A limit makes the eligibility of every line depend on the sums, so a limited job is listed again.
    const bool limited = job.is_limited();
    const int before = job.held + job.promised;
    if (limited) hide(job);
    job.user->used -= job.used + job.promised;
    change(job);
    job.user->used += job.used + job.promised;
    if (limited) {
      count(job, job.held + job.promised - before);
      show(job);
      relist_peers(job);
    } else {
      rank(job);
    }
  }

  /// Makes the first request of the line that is not a holder one: its slots count towards the shares. The
  /// job moves in the indexes of its user only at rank_holders: most passes end before its user is looked at
  /// again, and `release` then moves nothing back.
  void hold(JobState& job, const Shape& shape);
  /// Moves the jobs of a user, or of all users, that have new holders. Must precede any look at the order of
  /// these jobs.
  void rank_holders(const UserState& user);
  void rank_holders();
  /// Ends the state of all holders of a pass.
  void release(const std::vector<std::pair<JobState*, Shape>>& holders);

  /// Removes a victim from the shares as if it had terminated, so that the next victim is taken from the user
  /// or job with the largest remaining share. Must be undone by give_back; in between lines() is not in
  /// order.
  void lend(JobState& job, TaskKey task, int slots);
  void give_back(JobState& job, TaskKey task, int slots);

  /// Users with eligible requests, by shape, the next to be served first.
  const boost::container::flat_map<Shape, SortedVector<UserRank>>& lines() const { return lines_; }
  /// Users with potential victims, in ascending order of their shares.
  const SortedVector<UserRank>& victims() const { return victims_; }

 private:
  UserState& user(UserId id);
  void leave_user(JobState& job);
  double share_of(const UserState& user) const;
  double share_of(const JobState& job) const;
  void rank(UserState& user);
  void rank(JobState& job);
  void move(JobState& job);
  void show_victims(JobState& job);
  void hide_victims(JobState& job);
  void reweigh(JobState& job, int slots);
  void relist(JobState& job, const Shape& shape, JobState::Line& line);
  void list(JobState& job, const Shape& shape, JobState::Line& line);
  void unlist(JobState& job, const Shape& shape, JobState::Line& line);
  /// Adds the jobs of a user or of a workspace to its quota, if there is one.
  void join_quotas(JobState& job);
  void leave_quotas(JobState& job);
  /// Adds slots to the quotas of a job.
  static void count(JobState& job, int slots);
  /// Lists or unlists all jobs of a quota, or all that share a quota with `job`.
  void relist(QuotaState& quota);
  void relist_peers(JobState& job);
  void tidy(JobState& job, decltype(JobState::waiting)::iterator line);

  const Rules& rules_;
  std::map<JobKey, JobState> jobs_;
  std::map<std::int64_t, UserState> users_;
  std::map<QuotaKey, QuotaState> quotas_;  ///< addresses are stable
  boost::container::flat_map<Shape, SortedVector<UserRank>> lines_;
  SortedVector<UserRank> victims_;
  std::vector<JobState*> unranked_;  ///< jobs with holders that have not moved yet; Rules::holders at most
};

}  // namespace det::scheduler
