// Agreement of all ranks after every batch, so that they stop and save at the same one.
#pragma once

#include <cstdint>

#include "harness/src/distributed/communicator.h"

namespace det {

/// One per fit(), used by the training thread.
class RankVotes {
 public:
  /// `communicator` is null for a single process; its tensors are on `device`. The references must outlive
  /// this object.
  RankVotes(DistributedContext& distributed, Communicator* communicator, const torch::Device& device)
      : distributed_(distributed), communicator_(communicator), device_(device) {}

  /// The state of one rank, or of all ranks combined.
  struct Outcome {
    bool preempt = false;          ///< the master or a signal requested preemption of the chief
    bool stop = false;             ///< the trial requested a stop on some rank
    std::int64_t checkpoints = 0;  ///< checkpoints that became durable on the chief since the last exchange
  };
  /// Combines the votes of all ranks: flags by or, counts by sum. Collective; every rank gets the
  /// same outcome. Free with one process, one small collective otherwise. Throws
  /// std::runtime_error when a rank is gone.
  Outcome exchange(const Outcome& mine);

 private:
  DistributedContext& distributed_;
  Communicator* communicator_;
  torch::Device device_;
  torch::Tensor box_;  ///< int64[3], reused; CPU only
};

}  // namespace det
