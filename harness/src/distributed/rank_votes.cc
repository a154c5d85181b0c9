#include "harness/src/distributed/rank_votes.h"

#include <torch/csrc/autograd/generated/variable_factories.h>

#include <nlohmann/json.hpp>

namespace det {

RankVotes::Outcome RankVotes::exchange(const Outcome& mine) {
  if (communicator_ == nullptr) return mine;
  if (!device_.is_cpu()) {
    // A collective on the device would have to wait for its queued kernels before the result can be read, so
    // the votes go over the CPU connections.
    Outcome all;
    for (const Json& vote : distributed_.allgather({mine.preempt, mine.stop, mine.checkpoints})) {
      all.preempt |= vote.at(0).get<bool>();
      all.stop |= vote.at(1).get<bool>();
      all.checkpoints += vote.at(2).get<std::int64_t>();
    }
    return all;
  }
  if (!box_.defined()) box_ = torch::zeros({3}, torch::kInt64);
  auto* votes = box_.data_ptr<std::int64_t>();
  // The sum acts as a logical or for the flags.
  votes[0] = mine.preempt, votes[1] = mine.stop, votes[2] = mine.checkpoints;
  communicator_->all_reduce(box_)->wait();
  return {votes[0] != 0, votes[1] != 0, votes[2]};
}

}  // namespace det
