// Owns what the ranks of a trial must agree on after every batch, so that all leave or save at the same one.
#pragma once

#include <cstdint>

#include "context_state.h"

namespace det {

class RankVotes {
 public:
  explicit RankVotes(ContextState& state) : state_(state) {}

  struct Outcome {
    bool preempt = false;          ///< the chief was asked to
    bool stop = false;             ///< some rank's trial wants to
    std::int64_t checkpoints = 0;  ///< that have become durable on the chief
  };
  /// This rank's view in, everybody's out. Free with one process; with more it costs one small collective.
  Outcome exchange(const Outcome& mine);

 private:
  ContextState& state_;
  torch::Tensor box_;
};

}  // namespace det
