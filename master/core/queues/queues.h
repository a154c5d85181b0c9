// Schedulers of the pools, and the requests that wait in them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "master/core/core.h"

namespace det::core {

/// Returns the queue settings of a new experiment.
QueueSettings queue_settings(const expconf::ExperimentConfig& config, WallTime submitted);

/// A scheduler is never rebuilt: each change of an agent, a job, a request or an allocation must be followed
/// by its update here. An update marks its pool for the next decision, except where noted.
class Queues {
 public:
  explicit Queues(const Options& options) : options_(options) {}

  /// Returns the pool of a job, with the default for "".
  const std::string& pool_of(const QueueSettings& queue) const {
    return queue.pool.empty() ? options_.default_pool : queue.pool;
  }
  const std::map<std::string, scheduler::Scheduler>& pools() const { return pools_; }

  /// Sets or removes the limit on the slots of a user or of a workspace, over all pools. Marks all pools.
  void put_quota(const scheduler::QuotaKey& key, std::optional<int> slots);
  void put_agent(const std::string& pool, scheduler::Agent agent);
  /// Does not mark the pool: its last allocation or its disconnect has done so.
  void remove_agent(const std::string& pool, const AgentId& agent);
  void put_job(const std::string& pool, const scheduler::Job& job);
  /// Withdraws the requests of a job. Allocations keep the job in the scheduler until they have ended.
  void remove_job(const std::string& pool, JobKey job);
  /// Adds a request, or moves it to another pool.
  void request(const std::string& pool, const scheduler::Request& request);
  bool has_request(TaskKey task) const;
  /// No effect without a request.
  void withdraw(TaskKey task);
  /// Adds an allocation after a restart of the master. `job` is set when the allocation is in a pool that its
  /// job has left: the scheduler then keeps the job until the allocation has ended. Does not mark the pool.
  void restore(const std::string& pool, const scheduler::Running& running, const scheduler::Job* job);
  void terminating(const Allocation& allocation);
  void ended(const Allocation& allocation);

  /// Marks the pools with requests if there are quotas: slots that no longer count for a quota may admit a
  /// request in any pool.
  void mark_waiting();
  /// Marks a pool that pilots supply: one of them has changed.
  void mark(const std::string& pool) { dirty_.insert(pool); }
  bool is_dirty() const { return !dirty_.empty(); }
  /// Returns the pools that have changed, and clears their marks.
  std::set<std::string> take_dirty() { return std::exchange(dirty_, {}); }
  /// Requests of a pool for which no slots exist; see Scheduler::demand.
  std::vector<scheduler::Demand> demand(const std::string& pool, int limit) {
    return find(pool).second.demand(limit);
  }
  scheduler::Plan decide(const std::string& pool) {
    if (!quotas_.empty()) share_quotas(pool);
    return find(pool).second.decide();
  }

 private:
  using Pool = std::pair<const std::string, scheduler::Scheduler>;
  /// Returns a pool, and creates it with its rules on first use.
  Pool& find(const std::string& name);
  /// Returns the scheduler of a pool that is about to change, and marks the pool.
  scheduler::Scheduler& change(const std::string& name);

  /// Updates the quotas of a pool by the slots that are held in the others.
  void share_quotas(const std::string& pool);

  const Options& options_;
  std::map<std::string, scheduler::Scheduler> pools_;
  std::set<std::string> dirty_;  ///< pools to decide on in the next `schedule`
  std::map<scheduler::QuotaKey, int> quotas_;
};

}  // namespace det::core
