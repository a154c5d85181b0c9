// TCP ports on which the tasks of this agent rendezvous. Agents on one machine have slots with equal numbers,
// so each agent needs a block of ports of its own.
#pragma once

#include <string>

#include "common/base/fd.h"

namespace det::agent {

/// A block number that no other live agent in this network namespace holds. Stable across restarts unless
/// another agent took the block meanwhile.
class PortBlock {
 public:
  static constexpr int kBlocks = 15;
  /// Ports of a block; slots beyond share them.
  static constexpr int kSlots = 64;

  /// `instance` (DataDir::instance) determines the first block to try.
  explicit PortBlock(const std::string& instance);
  /// Returns the number, below kBlocks. If all blocks are taken, the number is shared and a warning was
  /// logged.
  int number() const { return number_; }

 private:
  UniqueFd held_;
  int number_ = 0;
};

}  // namespace det::agent
