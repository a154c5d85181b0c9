// Sums over virtual shards are bit-identical for every distribution of the shards, and so is what surrounds
// the shards: layouts, learning rates, random numbers, reducers, open metric windows.
#include "harness/src/distributed/virtual_shards.h"

#include "fixture.h"
#include "harness/src/observability/metric_reducers.h"

// Catch2 must follow LibTorch: both define CHECK.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

namespace det {
namespace {

using testing::Folder;
using testing::make_state;
using testing::Record;
using testing::SmallTrial;

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

/// Two ranks with equal tensors.
class TwinCommunicator final : public Communicator {
  struct Done final : Work {
    void wait() override {}
  };

 public:
  const char* name() const override { return "twin"; }
  int size() const override { return 2; }
  std::unique_ptr<Work> all_reduce(torch::Tensor, Reduction, Start) override { return nullptr; }
  std::unique_ptr<Work> all_gather(torch::Tensor output, torch::Tensor input) override {
    output.copy_(torch::cat({input, input}));
    return std::make_unique<Done>();
  }
  std::unique_ptr<Work> broadcast(torch::Tensor) override { return std::make_unique<Done>(); }
};

TEST_CASE("a sum has the layout of its parameter, on one process and on two") {
  TwinCommunicator two;
  const torch::Tensor gradient = torch::arange(4 * 3 * 2 * 2, torch::kFloat).reshape({4, 3, 2, 2});
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const torch::Tensor like = gradient.contiguous(format);
    for (const torch::Tensor& mine : {gradient, gradient.contiguous(at::MemoryFormat::ChannelsLast)}) {
      const torch::Tensor one_sum = sum_over_ranks({mine.clone()}, {like}, nullptr, 1).at(0);
      const torch::Tensor two_sum = sum_over_ranks({mine.clone()}, {like}, &two, 2).at(0);
      CHECK(one_sum.strides().vec() == like.strides().vec());
      CHECK(two_sum.strides().vec() == like.strides().vec());
      CHECK(torch::equal(one_sum, gradient));
      CHECK(torch::equal(two_sum, gradient * 2));
    }
  }
}

TEST_CASE("a learning rate that every shard halves is halved once in a step") {
  torch::optim::SGD sgd(std::vector<torch::Tensor>{torch::zeros({1})}, torch::optim::SGDOptions(0.4));
  auto& options = sgd.param_groups()[0].options();
  ShardedSchedules rates({}, {&sgd});
  for (const double expected : {0.2, 0.1}) {
    rates.start_step();
    for (int shard = 0; shard < 4; ++shard) {
      if (shard > 0) rates.rewind();
      options.set_lr(options.get_lr() / 2);
    }
    CHECK(options.get_lr() == expected);
  }
}

TEST_CASE("a reducer gets its values in the order of batches, with any number of shards on a rank") {
  SimpleReducer reducer([](const std::vector<Json>& values) { return Json(values); });
  const std::vector<std::vector<int>> two_ranks{{0, 1, 4, 5, 8}, {2, 3, 6, 7}},
      one_rank{{0, 1, 2, 3, 4, 5, 6, 7, 8}};
  for (const auto& ranks : {one_rank, two_ranks}) {
    const std::vector<Json> per_slot(ranks.begin(), ranks.end());
    const auto shards = static_cast<std::int64_t>(4 / ranks.size());
    CHECK(reducer.cross_slot_reduce(values_by_shard(per_slot, shards)) == Json(one_rank[0]));
  }
}

/// Draws random numbers in hooks and in evaluate_full_dataset.
class DrawingTrial final : public SmallTrial {
 public:
  struct Draw final : Callback {
    explicit Draw(std::vector<double>& to) : drawn(to) {}
    void on_validation_start() override { drawn.push_back(torch::rand({1}).item<double>()); }
    void on_validation_end(const Json&) override { on_validation_start(); }
    std::vector<double>& drawn;
  };
  DrawingTrial(TrialContext& context, Record& record, std::vector<double>& drawn)
      : SmallTrial(context, record), drawn_(drawn) {}
  DataLoader build_training_data_loader() override { return {testing::small_data(), {.batch_size = 1}}; }
  std::optional<Metrics> evaluate_full_dataset(const DataLoader&) override {
    drawn_.push_back(torch::rand({1}).item<double>());
    return Metrics{{"validation_loss", drawn_.back()}};
  }
  Callbacks build_callbacks() override { return {{"draw", std::make_shared<Draw>(drawn_)}}; }

 private:
  std::vector<double>& drawn_;
};

TEST_CASE("random numbers of hooks and of a full dataset do not depend on the last shard of a process") {
  std::vector<double> drawn[2];
  for (const int i : {0, 1}) {
    Folder storage;
    Record record;
    auto state = make_state(record, storage);
    state->gradients.exact = ShardPlan::make(i == 0 ? 2 : 4, 0, 1);
    TrialContext context(std::move(state));
    DrawingTrial trial(context, record, drawn[i]);
    Trainer(trial, context).fit({.max_length = Batches(3), .validation_period = Batches(1)});
  }
  CHECK(drawn[0].size() == 9);
  CHECK(drawn[0] == drawn[1]);
  CHECK(std::set<double>(drawn[0].begin(), drawn[0].end()).size() == 9);
}

/// Returns many metrics, and is preempted in batch 149.
class TalkativeTrial final : public SmallTrial {
 public:
  TalkativeTrial(TrialContext& context, Record& record) : SmallTrial(context, record), record_(record) {}
  DataLoader build_training_data_loader() override { return {testing::small_data(), {.batch_size = 1}}; }
  Metrics train_batch(Batch&, int64_t, int64_t number) override {
    Metrics metrics;
    for (int i = 0; i < 300; ++i)
      metrics.add("m" + std::to_string(i), std::sin(static_cast<double>(300 * number + i)));
    if (number == 149) record_.preempt = true;
    return metrics;
  }

 private:
  Record& record_;
};

TEST_CASE("a pause within a long reporting period of many values reports them, and the trial resumes") {
  Folder storage;
  const auto train = [&](Record& record) {
    auto state = make_state(record, storage);
    state->gradients.exact = ShardPlan::make(16, 0, 1);
    TrialContext context(std::move(state));
    TalkativeTrial trial(context, record);
    return Trainer(trial, context)
        .fit({.max_length = Batches(151), .reporting_period = Batches(1000), .latest_checkpoint = "latest"})
        .batches_trained;
  };
  Record first, second;
  CHECK(train(first) == 150);
  CHECK(std::count(first.events.begin(), first.events.end(), "training 150") == 1);
  CHECK(train(second) == 151);
}

}  // namespace
}  // namespace det
