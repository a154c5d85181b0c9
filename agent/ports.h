// Owns which ports of this machine the tasks of this agent meet at: agents that share a machine have slots of
// equal numbers.
#pragma once

#include <string>

#include "base/fd.h"

namespace det::agent {

/// A number that no other live agent of this machine (of this network namespace, which is whose ports they
/// are) has, the same again after a restart unless another took it meanwhile.
class PortBlock {
 public:
  static constexpr int kBlocks = 15;
  static constexpr int kSlots = 64;  ///< of a block; slots beyond share their ports

  /// `instance` says where the search begins.
  explicit PortBlock(const std::string& instance);
  /// Below kBlocks; when all are taken, one that is shared.
  int number() const { return number_; }

 private:
  UniqueFd held_;
  int number_ = 0;
};

}  // namespace det::agent
