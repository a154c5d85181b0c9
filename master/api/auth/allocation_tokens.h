// Tokens of running allocations that the core has confirmed. Calls of processes are authenticated with them
// before their requests are read.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/base/shared.h"
#include "master/loop/loop.h"

namespace det::api {

/// Thread-safe. Bounded to 4,096 tokens; all are valid ones. A token that is not held costs one read of the
/// core.
class AllocationTokens {
 public:
  explicit AllocationTokens(loop::Loop& loop) : loop_(loop) {}

  /// Whether the core has confirmed the token with this hash since the last change of its allocation. Does
  /// not block.
  bool is_confirmed(const std::string& token_hash) const;
  /// Checks that the token with this hash belongs to a running allocation of a trial. Blocks on the core
  /// unless is_confirmed(). Errors: kUnauthenticated, kUnavailable.
  Status check(const std::string& token_hash);
  /// Drops the tokens of a trial. Called after each durable change of its allocation. Does not block.
  void forget(TrialId trial);

 private:
  static constexpr std::size_t kPlaces = 4096;
  struct Known {
    std::string hash;
    std::size_t trial = 0;      ///< index in changes_
    std::uint64_t changes = 0;  ///< of the trial, before the read of the core
  };
  static std::size_t place_of(TrialId trial);

  loop::Loop& loop_;
  /// Indexed by the hash of the hash. Two tokens at the same index replace each other.
  std::array<Shared<Known>, kPlaces> known_;
  /// Number of forget() calls: all, and by trial. Two trials at the same index are forgotten together.
  std::atomic<std::uint64_t> all_changes_{0};
  std::array<std::atomic<std::uint64_t>, kPlaces> changes_{};
};

}  // namespace det::api
