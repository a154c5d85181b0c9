// Implementation of `reproducibility: exact`: gradients with the same bits on any number of processes.
//
// Every global batch is cut into a fixed number of virtual shards, a power of two. A process takes a
// consecutive range of shards and runs them one after another. The random generators are seeded per shard
// (by trial seed, batch and shard), and the shard's gradients are weighted by its number of records.
// Gradients are added as a binary tree over all shards: each process adds the lower levels, and the upper
// levels are added after an exchange. Floating-point addition is not associative, but the tree is the same
// for every number of processes.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "det/lr_scheduler_composed.h"
#include "harness/src/distributed/communicator.h"

namespace det {

/// Adds lists of tensors as a perfect binary tree over the leaves, in the order of add(). Takes ownership of
/// the tensors and adds in place; an undefined tensor counts as zero.
class TreeSum {
 public:
  using Tensors = std::vector<torch::Tensor>;
  /// Adds the next leaf. All leaves have the same length.
  void add(Tensors leaf);
  /// Returns the sum of all leaves and resets the object. Throws std::logic_error unless the
  /// number of leaves is a power of two.
  Tensors take();
  bool empty() const { return partial_.empty(); }

 private:
  std::vector<std::pair<std::int64_t, Tensors>> partial_;  // (leaves, sum), largest first
};

/// The virtual shards of one process.
struct ShardPlan {
  std::int64_t shards = 1;            ///< shards of a global batch; a power of two
  std::int64_t first = 0, count = 1;  ///< this process's range
  /// The plan of rank `rank` of `size`. Throws std::invalid_argument unless `size` is a
  /// power of two that divides `shards`.
  static ShardPlan make(std::int64_t shards, std::int64_t rank, std::int64_t size);
};

/// The upper levels of the tree: sums `mine` over all `size` ranks (a power of two) in rank order. Every rank
/// gets the sum. `like` gives the types, shapes and strides, and must be the same on all ranks. The strides
/// of a sum do not depend on `size`: optimizers select kernels by them, and norms add in memory order. A
/// tensor of `mine` may be undefined where none of the rank's shards reached the parameter. Collective.
TreeSum::Tensors sum_over_ranks(TreeSum::Tensors mine, const std::vector<torch::Tensor>& like,
                                Communicator* communicator, std::int64_t size);

/// A shard's number of records as a tensor (one double), so that weights are summed
/// by the same tree as gradients.
torch::Tensor weight_of(double records, const torch::Device& device);

/// Seeds the default generators of this process for one shard of one batch. A negative `shard` stands for
/// random numbers outside of shards, which are then equal on any number of processes.
void seed_shard(const torch::Device& device, std::int64_t trial_seed, std::int64_t batch, std::int64_t shard);

/// Throws std::logic_error: the shards of a batch did not all step the same optimizers once.
[[noreturn]] void refuse_uneven_steps();

/// Learning rates that the trial sets in each shard, by hand or by schedules that it steps manually. Every
/// shard starts from those at the start of the step. Does not own the schedules and optimizers.
class ShardedSchedules {
 public:
  ShardedSchedules(std::vector<LRScheduler*> schedules,
                   const std::vector<torch::optim::Optimizer*>& optimizers);
  /// Records the schedules and learning rates.
  void start_step();
  /// Restores them. Called before every shard but the first.
  void rewind();

 private:
  std::vector<LRScheduler*> schedules_;
  std::vector<torch::optim::Optimizer*> optimizers_;
  std::vector<Json> before_;
  /// Per schedule, and per optimizer: the learning rate of each parameter group.
  std::vector<std::vector<double>> rates_, group_rates_;
};

/// Buffers of models under virtual shards. Every shard starts from the buffers at the start of the step. The
/// step's result for floating-point buffers (running means) is the mean over all shards, weighted by records;
/// for other buffers it is that of shard 0.
class ShardedBuffers {
 public:
  explicit ShardedBuffers(const std::vector<std::shared_ptr<torch::nn::Module>>& models);
  /// Records the buffers.
  void start_step();
  /// Adds the buffers of a shard, weighted by its records, and restores those at the start of the step.
  void end_shard(double weight);
  /// Sets the buffers to the result over all ranks. Called after the last shard of this process. Collective.
  void end_step(Communicator* communicator, std::int64_t size);

 private:
  // buffers_: floating point. others_: the rest. first_others_: others_ after this process's first shard.
  std::vector<torch::Tensor> buffers_, others_, before_, first_others_;
  std::vector<torch::Tensor> others_before_;
  TreeSum sum_;
};

}  // namespace det
