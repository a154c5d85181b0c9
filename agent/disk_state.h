// State of the disk that holds the agent's data directory. A full disk is a state: the agent takes no new
// work, its allocations go on, and it takes work again by itself when there is space.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"

namespace det::agent {

/// Belongs to the loop thread.
class DiskState {
 public:
  /// Free bytes below which the disk counts as full, and from which on it does not any more. A new allocation
  /// needs room for its code, its model and its log.
  static constexpr std::int64_t kFull = 64LL << 20, kEnough = 128LL << 20;
  /// Time between two measurements.
  static constexpr Duration kInterval = std::chrono::seconds(2);

  /// `directory` exists and does not move.
  explicit DiskState(std::string directory) : directory_(std::move(directory)) {}

  /// Measures the free space when it is due. Returns true when the state has changed, which is logged.
  bool look(MonoTime now);
  MonoTime next_look() const { return next_; }
  /// Why the agent takes no new work, and the remedy; "" while there is space.
  const std::string& problem() const { return problem_; }

 private:
  const std::string directory_;
  std::string problem_;
  MonoTime next_;
};

}  // namespace det::agent
