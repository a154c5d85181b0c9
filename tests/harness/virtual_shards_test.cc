// Sums over virtual shards are bit-identical for every distribution of the shards.
#include "harness/src/distributed/virtual_shards.h"

#include <torch/torch.h>

#include <catch2/catch.hpp>

namespace det {
namespace {

torch::Tensor leaf(std::int64_t shard) {
  torch::manual_seed(static_cast<std::uint64_t>(shard + 1));
  return torch::randn({257}).mul_(std::pow(10.0, static_cast<double>(shard % 7)));
}

/// The reduction tree over shards [first, first + count).
torch::Tensor subtree(std::int64_t first, std::int64_t count) {
  TreeSum tree;
  for (std::int64_t i = 0; i < count; ++i) tree.add({leaf(first + i)});
  return tree.take().at(0);
}

TEST_CASE("combining subtrees gives the tree's bits, where a running sum does not") {
  const torch::Tensor whole = subtree(0, 8);
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    TreeSum upper;
    for (std::int64_t rank = 0; rank < ranks; ++rank) upper.add({subtree(rank * 8 / ranks, 8 / ranks)});
    CHECK(torch::equal(upper.take().at(0), whole));
  }
  torch::Tensor running = leaf(0);
  for (std::int64_t i = 1; i < 8; ++i) running = running + leaf(i);
  CHECK_FALSE(torch::equal(running, whole));
}

TEST_CASE("a parameter that some shards do not reach is summed over the others") {
  TreeSum tree;
  tree.add({leaf(0), torch::Tensor()});
  tree.add({torch::Tensor(), torch::Tensor()});
  tree.add({leaf(2), torch::Tensor()});
  tree.add({torch::Tensor(), torch::Tensor()});
  const TreeSum::Tensors sum = tree.take();
  CHECK(torch::equal(sum[0], leaf(0) + leaf(2)));
  CHECK_FALSE(sum[1].defined());
}

TEST_CASE("shards are distributed over powers of two only") {
  const ShardPlan plan = ShardPlan::make(8, 1, 4);
  CHECK(plan.first == 2);
  CHECK(plan.count == 2);
  CHECK_THROWS_WITH(ShardPlan::make(4, 0, 3), Catch::Contains("not 3"));
  CHECK_THROWS_WITH(ShardPlan::make(4, 0, 8), Catch::Contains("virtual_shards"));
}

TEST_CASE("buffers become the mean over the shards after a step, and start equal on every shard") {
  torch::nn::BatchNorm1d norm(2);
  ShardedBuffers buffers({norm.ptr()});
  buffers.start_step();
  const std::vector<double> weights{3, 1};
  for (const double weight : weights) {
    CHECK(torch::equal(norm->running_mean, torch::zeros({2})));
    norm->running_mean.fill_(weight * 10);
    norm->num_batches_tracked.add_(1);
    buffers.end_shard(weight);
  }
  buffers.end_step(nullptr, 1);
  CHECK(torch::allclose(norm->running_mean, torch::full({2}, (30.0 * 3 + 10.0) / 4)));
  CHECK(norm->num_batches_tracked.item<std::int64_t>() == 1);
}

}  // namespace
}  // namespace det
