// Tokens of running allocations that the core has confirmed. Calls of processes are authenticated with them
// before their requests are read, and frequent reports are attributed by them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/base/shared.h"
#include "master/db/accounts/quotas.h"
#include "master/loop/loop.h"

namespace det::api {

/// The trial that a token reports for. None of it changes while the token is confirmed.
struct ConfirmedTrial {
  TrialId trial;
  RunNumber run = 0;
  ExperimentId experiment;
  TaskId task;
  db::TaskOwner owner;  ///< of the experiment
  WallTime started;     ///< of the trial
};

/// Thread-safe. Holds the confirmed tokens of running allocations only. A token that is not held costs one
/// read of the core.
class AllocationTokens {
 public:
  explicit AllocationTokens(loop::Loop& loop) : loop_(loop) {}

  /// Returns the trial of the token with this hash if the core has confirmed it since the last change of the
  /// allocation, else null. Does not block.
  std::shared_ptr<const ConfirmedTrial> confirmed(const std::string& token_hash) const;
  /// Checks that the token with this hash belongs to a running allocation of a trial. Blocks on the core
  /// unless confirmed(). Errors: kUnauthenticated, kUnavailable.
  Status check(const std::string& token_hash);
  /// Drops the tokens of a trial. Called after each durable change of its allocation. Does not block.
  void forget(TrialId trial);

 private:
  static constexpr std::size_t kShards = 256, kTrials = 4096;
  struct Known : ConfirmedTrial {
    std::string hash;
    std::uint64_t changes = 0;  ///< of the trial, before the read of the core
  };
  using Shard = std::vector<std::shared_ptr<const Known>>;
  static std::size_t shard_of(const std::string& token_hash);
  const std::atomic<std::uint64_t>& changes_of(TrialId trial) const;

  loop::Loop& loop_;
  /// Copy-on-write. Of two threads that add to a shard at once, one may lose its entry, which is read again.
  std::array<Shared<Shard>, kShards> shards_;
  /// Number of forget() calls: all, and by trial. Two trials at the same index are forgotten together.
  std::atomic<std::uint64_t> all_changes_{0};
  std::array<std::atomic<std::uint64_t>, kTrials> changes_{};
};

}  // namespace det::api
