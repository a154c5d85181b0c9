// Owns `reproducibility: exact`: gradients that are the same bits on any number of processes.
//
// Every global batch is cut into a fixed number of virtual shards, a power of two. A process takes its
// consecutive part of them one after the other; each shard runs on its own (its random numbers seeded by
// trial seed, batch and shard) and leaves gradients weighted by its records. They are added as a binary tree
// over all shards: the lower levels here, the upper ones after an exchange, so the order of every addition is
// that of the tree, whoever does it. Floating point addition does not associate; a fixed tree does not need
// it to.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "communicator.h"
#include "det/lr_scheduler.h"

namespace det {

/// Adds lists of tensors, given one after the other, as a perfect binary tree over them. Takes the tensors
/// over and adds in place; an undefined tensor is a zero.
class TreeSum {
 public:
  using Tensors = std::vector<torch::Tensor>;
  void add(Tensors leaf);
  /// The sum of all leaves; their number must be a power of two. Starts again.
  Tensors take();
  bool empty() const { return partial_.empty(); }

 private:
  std::vector<std::pair<std::int64_t, Tensors>> partial_;  // (leaves, sum), larger ones first
};

/// Which shards this process takes.
struct ShardPlan {
  std::int64_t shards = 1;  ///< of a global batch; a power of two
  std::int64_t first = 0, count = 1;
  /// Throws std::invalid_argument unless `size` is a power of two that divides `shards`.
  static ShardPlan make(std::int64_t shards, std::int64_t rank, std::int64_t size);
};

/// The upper levels of the tree: sums `mine` of all ranks (powers of two many) in the order of ranks, on
/// every rank. Shapes and which tensors are defined may differ by rank only where no shard reached a
/// parameter.
TreeSum::Tensors sum_over_ranks(TreeSum::Tensors mine, const std::vector<torch::Tensor>& like,
                                Communicator* communicator, std::int64_t size);

/// The records of a shard as a leaf of the tree, so that they are summed with what they weight: one double.
torch::Tensor weight_of(double records, const torch::Device& device);

/// Seeds the generators for one shard of one batch.
void seed_shard(const torch::Device& device, std::int64_t trial_seed, std::int64_t batch, std::int64_t shard);

/// Throws std::logic_error: not every shard of a batch stepped the same optimizers once.
[[noreturn]] void refuse_uneven_steps();

/// Learning-rate schedules that the trial steps by hand, in each shard: each starts from those of the step's
/// start.
class ShardedSchedules {
 public:
  explicit ShardedSchedules(std::vector<LRScheduler*> schedules) : schedules_(std::move(schedules)) {}
  void start_step();
  /// After a shard that is not this process's last: puts the schedules and learning rates of the step's start
  /// back.
  void rewind();

 private:
  std::vector<LRScheduler*> schedules_;
  std::vector<Json> before_;
  std::vector<std::vector<double>> rates_;
};

/// Floating-point buffers (running means) under virtual shards: each shard starts from those of the step's
/// start, and their mean over shards, weighted by records, is what the step leaves. Other buffers are those
/// of shard 0.
class ShardedBuffers {
 public:
  explicit ShardedBuffers(const std::vector<std::shared_ptr<torch::nn::Module>>& models);
  void start_step();
  /// After a shard: `weight` is its records. Puts the buffers of the step's start back.
  void end_shard(double weight);
  /// After the last shard of this process.
  void end_step(Communicator* communicator, std::int64_t size);

 private:
  std::vector<torch::Tensor> buffers_, others_, before_, first_others_;
  std::vector<torch::Tensor> others_before_;
  TreeSum sum_;
};

}  // namespace det
