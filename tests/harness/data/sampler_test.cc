// The order of data is a pure function of (seed, epoch, step, shard). Samplers follow Determined's data
// guide.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "det/record_random.h"
#include "det/samplers.h"
#include "harness/src/data/dealer.h"

namespace det {
namespace {

using Indices = std::vector<std::int64_t>;
using Batches = std::vector<Indices>;

struct Order {
  std::uint64_t seed = 0;
  std::int64_t records = 0, batch_size = 1;
  bool shuffle = false, drop_last = false;
  DealSpec deal;
};

Dealer make_dealer(const Order& order) {
  AnySampler sampler = SequentialSampler(order.records);
  if (order.shuffle) sampler = ReproducibleShuffleSampler(sampler, order.seed);
  return Dealer(BatchSampler(sampler, order.batch_size, order.drop_last), order.deal);
}

Indices whole_epoch(const Order& order, std::int64_t epoch) {
  const Dealer dealer = make_dealer(order);
  Indices all;
  for (std::int64_t i = 0; i < dealer.steps() * order.deal.count; ++i) {
    const auto deal = dealer.deal(epoch * dealer.steps() * order.deal.count + i);
    if (!deal) break;
    all.insert(all.end(), deal->records.begin(), deal->records.end());
  }
  return all;
}
Indices counted(std::int64_t count) {
  Indices all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}
Indices sorted(Indices indices) {
  std::sort(indices.begin(), indices.end());
  return indices;
}

/// The first `most` items of a pass.
template <typename Item>
std::vector<Item> taken(const AnySamplerOf<Item>& sampler, std::int64_t pass = 0, std::int64_t most = 1000) {
  std::vector<Item> items;
  for (std::int64_t i = 0; i < std::min(most, sampler->count()); ++i) items.push_back(sampler->at(pass, i));
  return items;
}

TEST_CASE("records without shuffling come in order, with a short last batch") {
  const Order order{.records = 10, .batch_size = 4};
  CHECK(make_dealer(order).steps() == 3);
  CHECK(make_dealer(order).deal(2)->records == Indices{8, 9});
  CHECK_FALSE(make_dealer(order).deal(3));
  CHECK(whole_epoch(order, 0) == counted(10));
}

TEST_CASE("drop_last omits the short batch") {
  CHECK(whole_epoch({.records = 10, .batch_size = 4, .drop_last = true}, 0) == counted(8));
}

TEST_CASE("a shuffled epoch holds every record once, and epochs and seeds differ") {
  Order order{.seed = 3, .records = 1000, .batch_size = 32, .shuffle = true, .deal = {.training = true}};
  const Indices first = whole_epoch(order, 0), second = whole_epoch(order, 1);
  CHECK(sorted(first) == counted(1000));
  CHECK(first != counted(1000));
  CHECK(sorted(second) == counted(1000));
  CHECK(first != second);
  order.seed = 4;
  CHECK(first != whole_epoch(order, 0));
}

TEST_CASE("a batch does not depend on earlier requests") {
  const Order order{.seed = 9, .records = 101, .batch_size = 7, .shuffle = true, .deal = {.training = true}};
  const Dealer walked = make_dealer(order);
  Batches in_order;
  for (std::int64_t p = 0; p < 3 * walked.steps(); ++p) in_order.push_back(walked.deal(p)->records);
  for (const std::int64_t p : {44, 0, 17, 31, 15, 14})
    CHECK(make_dealer(order).deal(p)->records == in_order[p]);
}

TEST_CASE("the order of a seed never changes between releases") {
  const Order order{.seed = 1, .records = 8, .batch_size = 8, .shuffle = true, .deal = {.training = true}};
  CHECK(whole_epoch(order, 0) == Indices{4, 1, 7, 5, 3, 0, 6, 2});
  CHECK(whole_epoch(order, 1) == Indices{7, 5, 4, 1, 2, 6, 0, 3});
}

TEST_CASE("ranks share an epoch without overlap when validating") {
  for (const std::int64_t world : {1, 2, 3, 7, 20}) {
    Indices all;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const Indices shard =
          whole_epoch({.records = 50, .batch_size = 4, .deal = {.world = world, .first = rank}}, 0);
      all.insert(all.end(), shard.begin(), shard.end());
    }
    CHECK(sorted(all) == counted(50));
  }
}

TEST_CASE("training ranks have equal step counts and together see every record") {
  for (const std::int64_t world : {1, 2, 3, 7, 20}) {
    std::set<std::int64_t> seen, steps;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const Order order{.seed = 2,
                        .records = 50,
                        .batch_size = 4,
                        .shuffle = true,
                        .deal = {.world = world, .first = rank, .training = true}};
      steps.insert(make_dealer(order).steps());
      for (const std::int64_t index : whole_epoch(order, 1)) seen.insert(index);
    }
    CHECK(steps.size() == 1);
    CHECK(seen.size() == 50);
  }
}

TEST_CASE("a process with several shards gets the batches of several processes, shard by shard") {
  for (const bool training : {true, false}) {
    const auto dealer = [&](std::int64_t first, std::int64_t count) {
      return make_dealer({.seed = 2,
                          .records = 50,
                          .batch_size = 4,
                          .shuffle = true,
                          .deal = {.world = 4, .first = first, .count = count, .training = training}});
    };
    const Dealer whole = dealer(0, 4);
    for (std::int64_t p = 0; p < (training ? 40 : 13); ++p) {
      const auto single = dealer(p % 4, 1).deal(p / 4);
      REQUIRE(single);
      CHECK(whole.deal(p)->records == single->records);
      CHECK(whole.deal(p)->number == single->number);
      CHECK(whole.deal(p)->epoch == single->epoch);
      const auto pair = dealer(p % 4 / 2 * 2, 2).deal(p / 4 * 2 + p % 2);
      REQUIRE(pair);
      CHECK(pair->records == single->records);
    }
    if (!training) CHECK_FALSE(whole.deal(13));
  }
}

TEST_CASE("shards beyond the world size are refused") {
  CHECK_THROWS_WITH(make_dealer({.records = 5, .deal = {.world = 2, .first = 1, .count = 2}}),
                    "shards 1 to 2 of 2");
  CHECK_THROWS_AS(make_dealer({.records = 5, .deal = {.world = 2, .first = -1}}), std::invalid_argument);
}

TEST_CASE("a batch sampler groups the items of its sampler") {
  CHECK(taken<Indices>(BatchSampler(SequentialSampler(5), 2, false)) == Batches{{0, 1}, {2, 3}, {4}});
  CHECK(taken<Indices>(BatchSampler(SequentialSampler(5), 2, true)) == Batches{{0, 1}, {2, 3}});
  CHECK(BatchSampler(SequentialSampler(5), 2, false).size() == 3);
  CHECK(BatchSampler(RepeatSampler(SequentialSampler(5)), 2, false).size() == 3);
  // An endless order has no short batches: they span the end of an epoch.
  CHECK(BatchSampler(RepeatSampler(SequentialSampler(5)), 2, false).at(0, 2) == Indices{4, 0});
}

TEST_CASE("repeating keeps the length and is endless, over records and over batches") {
  const RepeatSampler records((ReproducibleShuffleSampler(SequentialSampler(6), 4)));
  CHECK(records.size() == 6);
  CHECK(records.count() == kEndless);
  const AnySampler shuffled = ReproducibleShuffleSampler(SequentialSampler(6), 4);
  Indices expected = taken(shuffled, 0), second = taken(shuffled, 1);
  expected.insert(expected.end(), second.begin(), second.end());
  CHECK(taken<std::int64_t>(records, 0, 12) == expected);
  CHECK(expected != Indices{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});

  const RepeatBatchSampler batches(BatchSampler(SequentialSampler(3), 2, false));
  CHECK(batches.size() == 2);
  CHECK(taken<Indices>(batches, 0, 5) == Batches{{0, 1}, {2}, {0, 1}, {2}, {0, 1}});
}

TEST_CASE("a shard's length is n / w + (n % w > rank), and shards partition the data") {
  for (const std::int64_t n : {0, 1, 7, 12}) {
    for (const std::int64_t w : {1, 2, 3, 5}) {
      Indices records, batches;
      for (std::int64_t rank = 0; rank < w; ++rank) {
        const DistributedSampler shard(SequentialSampler(n), w, rank);
        CHECK(shard.size() == n / w + (n % w > rank));
        const Indices of_shard = taken<std::int64_t>(shard);
        for (std::size_t i = 0; i < of_shard.size(); ++i)
          CHECK(of_shard[i] == static_cast<std::int64_t>(i) * w + rank);
        records.insert(records.end(), of_shard.begin(), of_shard.end());
        const DistributedBatchSampler of_batches(BatchSampler(SequentialSampler(n), 1, false), w, rank);
        CHECK(of_batches.size() == n / w + (n % w > rank));
        for (const Indices& batch : taken<Indices>(of_batches)) batches.push_back(batch[0]);
      }
      CHECK(sorted(records) == counted(n));
      CHECK(sorted(batches) == counted(n));
    }
  }
}

TEST_CASE("skipping keeps the length and omits the first items of every pass") {
  const SkipSampler records(SequentialSampler(5), 2);
  CHECK(records.size() == 5);
  CHECK(taken<std::int64_t>(records) == Indices{2, 3, 4});
  CHECK(taken<std::int64_t>(records, 3) == Indices{2, 3, 4});
  CHECK(taken<std::int64_t>(SkipSampler(SequentialSampler(5), 7)).empty());
  const SkipBatchSampler batches(RepeatBatchSampler(BatchSampler(SequentialSampler(4), 2, false)), 3);
  CHECK(batches.size() == 2);
  CHECK(taken<Indices>(batches, 0, 2) == Batches{{2, 3}, {0, 1}});
  // Skipping takes constant time.
  CHECK(SkipSampler(RepeatSampler(SequentialSampler(10)), 1'000'000'000'003).at(0, 0) == 3);
}

TEST_CASE("batches are shuffled as units") {
  const AnyBatchSampler shuffled =
      ReproducibleShuffleBatchSampler(BatchSampler(SequentialSampler(9), 2, false), 11);
  CHECK(shuffled->size() == 5);
  Batches first = taken(shuffled, 0), again = taken(shuffled, 0), second = taken(shuffled, 1);
  CHECK(first == again);
  CHECK(first != second);
  std::sort(first.begin(), first.end());
  CHECK(first == Batches{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8}});
}

TEST_CASE("samplers refuse invalid arguments with the reason") {
  const AnySampler endless = RepeatSampler(SequentialSampler(3));
  CHECK_THROWS_WITH(ReproducibleShuffleSampler(endless, 1), Catch::Contains("repeat after this, not before"));
  CHECK_THROWS_WITH(RepeatSampler(SequentialSampler(0)), Catch::Contains("is empty"));
  CHECK_THROWS_WITH(DistributedSampler(endless, 2, 2), Catch::Contains("rank 2 of 2"));
  CHECK_THROWS_WITH(SkipSampler(endless, -1), Catch::Contains("-1"));
  CHECK_THROWS_WITH(BatchSampler(endless, 0, false), Catch::Contains("batch_size"));
  CHECK_THROWS_WITH(BatchSampler(AnySampler(), 1, false), Catch::Contains("no sampler"));
}

/// Follows Determined's guide "Customize a Reproducible Dataset" line by line.
AnyBatchSampler make_batch_sampler(AnySampler sampler, const std::string& mode, std::uint64_t shuffle_seed,
                                   std::int64_t num_workers, std::int64_t rank, std::int64_t batch_size,
                                   std::int64_t skip) {
  if (mode == "training") {
    // Shuffle first.
    sampler = ReproducibleShuffleSampler(sampler, shuffle_seed);

    // Repeat when training.
    sampler = RepeatSampler(sampler);
  }

  // Always shard, and not before a repeat.
  sampler = DistributedSampler(sampler, num_workers, rank);

  // Batch before skip, because batches are counted, not records.
  AnyBatchSampler batch_sampler = BatchSampler(sampler, batch_size, false);

  if (mode == "training") {
    // Skip when training, and always last.
    batch_sampler = SkipBatchSampler(batch_sampler, skip);
  }

  return batch_sampler;
}

TEST_CASE("the guide's example resumes at its position, and its shards form one epoch") {
  const auto training = [](std::int64_t rank, std::int64_t skip) {
    return make_batch_sampler(SequentialSampler(10), "training", 7, 2, rank, 3, skip);
  };
  CHECK(training(0, 0)->size() == 2);
  const Batches whole = taken(training(1, 0), 0, 20);
  for (std::int64_t skip = 0; skip < 12; ++skip) {
    CHECK(taken(training(1, skip), 0, 8) == Batches(whole.begin() + skip, whole.begin() + skip + 8));
  }
  Indices both;
  for (std::int64_t i = 0; i < 10; ++i) {  // two epochs of 10 records over two shards
    for (std::int64_t rank : {0, 1}) both.push_back(training(rank, 0)->at(0, i / 3)[i % 3]);
  }
  CHECK(sorted(Indices(both.begin(), both.begin() + 10)) == counted(10));
  CHECK(sorted(Indices(both.begin() + 10, both.end())) == counted(10));

  Indices validated;
  for (std::int64_t rank : {0, 1}) {
    const AnyBatchSampler validation =
        make_batch_sampler(SequentialSampler(11), "validation", 7, 2, rank, 3, 5);
    CHECK(validation->size() == 2);
    for (const Indices& batch : taken(validation))
      validated.insert(validated.end(), batch.begin(), batch.end());
  }
  CHECK(sorted(validated) == counted(11));
}

TEST_CASE("a batch sampler is adapted as repeat, shard, skip") {
  const AnyBatchSampler batches = BatchSampler(SequentialSampler(5), 1, false);
  const AnyBatchSampler adapted =
      adapt_batch_sampler(batches, {.repeat = true, .skip = 2, .num_replicas = 2, .rank = 1});
  CHECK(adapted->size() == 2);
  CHECK(taken(adapted, 0, 4) == Batches{{0}, {2}, {4}, {1}});
  CHECK(taken(adapt_batch_sampler(batches, {})) == taken(batches));
}

/// A custom order: every second record.
class EvenSampler : public Sampler {
 public:
  explicit EvenSampler(std::int64_t records) : records_(records) {}
  std::int64_t size() const override { return (records_ + 1) / 2; }
  std::int64_t at(std::int64_t, std::int64_t i) const override { return 2 * i; }

 private:
  std::int64_t records_;
};

TEST_CASE("a custom sampler is accepted by value or as a shared pointer") {
  CHECK(taken<Indices>(BatchSampler(EvenSampler(9), 2, false)) == Batches{{0, 2}, {4, 6}, {8}});
  CHECK(taken<std::int64_t>(DistributedSampler(std::make_shared<EvenSampler>(9), 2, 0)) == Indices{0, 4, 8});
}

TEST_CASE("random choices depend on seed, epoch and record, and are the same in every release") {
  const auto draws = [](std::uint64_t seed, std::int64_t epoch, std::int64_t record) {
    RecordRandom random(seed, epoch, record);
    Indices drawn;
    for (int i = 0; i < 4; ++i) drawn.push_back(random.below(1000));
    return drawn;
  };
  CHECK(draws(1, 2, 3) == draws(1, 2, 3));
  CHECK(std::set<Indices>{draws(1, 2, 3), draws(2, 2, 3), draws(1, 3, 3), draws(1, 2, 4)}.size() == 4);
  CHECK(draws(1, 2, 3) == Indices{900, 12, 492, 497});
  RecordRandom random(1, 0, 0);
  double sum = 0;
  for (int i = 0; i < 1000; ++i) sum += random.uniform(2, 4);
  CHECK(sum / 1000 == Approx(3).margin(0.1));
  CHECK_THROWS_AS(random.below(0), std::invalid_argument);
}

}  // namespace
}  // namespace det
