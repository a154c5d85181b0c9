// Use of stored data by owners with quotas. Measured at intervals; without such quotas nothing is measured.
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/shared.h"
#include "master/core/queues/quota.h"
#include "master/db/accounts/quotas.h"
#include "master/loop/workers.h"

namespace det::api {

/// Enforces the quotas of metric series, log bytes and checkpoint bytes. Thread-safe.
class QuotaMeter {
 public:
  /// Time between two measurements: what arrives in between may exceed a quota.
  static constexpr Duration kInterval = std::chrono::seconds(10);

  explicit QuotaMeter(db::Pool& pool) : pool_(pool) {}

  /// Measures now. Blocks on the database.
  Status measure();
  /// Measures on `workers` when the interval has passed. Nothing happens without quotas of data. One thread.
  void tick(loop::Workers& workers);

  /// Errors: kResourceExhausted, naming the quota, when the user or the workspace had no room left at the
  /// last measurement. Never blocks.
  Status check(core::QuotaResource resource, const db::TaskOwner& owner) const;
  /// The trial began when this master already ran, so that it has reported to no other one.
  bool is_fresh(WallTime started) const { return started.micros > created_.micros; }
  /// Returns true for the first dropped batch of log lines of an allocation, false for later ones. Forgets
  /// allocations beyond 10,000. A concurrent first batch may be the first, too.
  bool is_first_drop(const AllocationId& allocation);
  /// No owner is at a quota of this resource, so `check` succeeds for all.
  bool has_room(core::QuotaResource resource) const;

 private:
  /// Quotas without room, and their errors.
  using Exhausted = std::map<std::pair<core::QuotaResource, scheduler::QuotaKey>, std::string>;

  db::Pool& pool_;
  const WallTime created_ = wall_now();
  Shared<std::set<AllocationId>> dropped_;  ///< allocations with dropped log lines
  Shared<Exhausted> exhausted_;
  std::atomic<bool> limited_ = true;  ///< quotas of data exist; assumed before the first measurement
  std::atomic<bool> measuring_ = false;
  MonoTime next_;
};

}  // namespace det::api
