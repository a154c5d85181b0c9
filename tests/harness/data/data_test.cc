#include "det/data.h"

#include <torch/types.h>

#include <catch2/catch.hpp>

#include "det/datasets.h"

namespace det {
namespace {

class Numbers : public Dataset {
 public:
  explicit Numbers(std::int64_t count) : count_(count) {}
  std::int64_t size() const override { return count_; }
  Batch get_batch(const std::vector<std::int64_t>& indices) const override { return torch::tensor(indices); }

 private:
  std::int64_t count_;
};

std::vector<std::int64_t> values(const Batch& batch) {
  const torch::Tensor& tensor = batch.data();
  return {tensor.data_ptr<std::int64_t>(), tensor.data_ptr<std::int64_t>() + tensor.numel()};
}

TEST_CASE("a loader counts the batches of an epoch") {
  CHECK(DataLoader(Numbers(9), {.batch_size = 4}).size() == 3);
  CHECK(DataLoader(Numbers(9), {.batch_size = 4, .drop_last = true}).size() == 2);
  CHECK(DataLoader(Numbers(9), {.batch_size = 4, .sampler = SequentialSampler(4)}).size() == 1);
  CHECK(DataLoader(Numbers(9), {.batch_sampler = BatchSampler(SequentialSampler(9), 2, false)}).size() == 5);
  CHECK(DataLoader(Numbers(9),
                   {.batch_sampler = SkipBatchSampler(BatchSampler(SequentialSampler(9), 2, false), 2)})
            .size() == 3);
  CHECK(DataLoader(Numbers(9), {}).is_reproducible());
}

TEST_CASE("a loader refuses options that cannot be batched") {
  const AnySampler order = SequentialSampler(3);
  const AnyBatchSampler batches = BatchSampler(order, 2, false);
  const auto refused = [](const DataLoaderOptions& options, const std::string& why) {
    CHECK_THROWS_WITH(DataLoader(Numbers(3), options), Catch::Contains(why));
    CHECK_THROWS_AS(DataLoader(Numbers(3), options), std::invalid_argument);
  };
  CHECK_THROWS_WITH(DataLoader(Numbers(0), {}), Catch::Contains("the dataset is empty"));
  refused({.batch_size = 0}, "batch_size must be at least 1, not 0");
  refused({.batch_size = 4, .drop_last = true}, "drop_last leaves no batch of 4 in 3 records");
  refused({.shuffle = true, .sampler = order}, "shuffle cannot go with sampler");
  refused({.batch_size = 2, .batch_sampler = batches}, "batch_sampler cannot go with");
  refused({.shuffle = true, .batch_sampler = batches}, "batch_sampler cannot go with");
  refused({.sampler = order, .batch_sampler = batches}, "batch_sampler cannot go with");
  refused({.batch_sampler = batches, .drop_last = true}, "batch_sampler cannot go with");
  refused({.num_workers = -1}, "num_workers must not be negative");
  refused({.num_workers = 1, .prefetch_factor = 0}, "prefetch_factor must be at least 1");
  refused({.prefetch_factor = 2}, "prefetch_factor is for workers");
  refused({.sampler = RepeatSampler(order)}, "sampler is endless");
  refused({.batch_sampler = RepeatBatchSampler(batches)}, "batch_sampler is endless");
  refused({.sampler = SkipSampler(order, 3)}, "sampler gives no record");
  refused({.batch_sampler = SkipBatchSampler(batches, 3)}, "batch_sampler gives no batch");
  CHECK_THROWS_WITH(DataLoader(std::shared_ptr<BatchSource>()), Catch::Contains("no source"));
}

TEST_CASE("all problems of a loader are in one message") {
  CHECK_THROWS_WITH(
      DataLoader(Numbers(0),
                 {.batch_size = -1, .shuffle = true, .sampler = SequentialSampler(1), .num_workers = -2}),
      Catch::Contains("the dataset is empty") && Catch::Contains("batch_size") &&
          Catch::Contains("shuffle") && Catch::Contains("num_workers"));
}

class Squares : public SampleDataset {
 public:
  std::int64_t size() const override { return 10; }
  Batch get(std::int64_t index) const override {
    return Batch::Dict{{"x", torch::tensor(index)}, {"y", torch::full({2}, index * index)}};
  }
};

TEST_CASE("a dataset read record by record gives batches of its structure") {
  const Batch batch = Squares().get_batch({4, 0, 4});
  CHECK(batch["x"].tensor().equal(torch::tensor({4, 0, 4})));
  CHECK(batch["y"].tensor().sizes() == torch::IntArrayRef({3, 2}));
  CHECK(batch["y"].tensor()[2][1].item<int>() == 16);
}

class Noisy : public AugmentedDataset {
 public:
  std::int64_t size() const override { return 10; }
  Batch get(std::int64_t, RecordRandom& random) const override {
    return torch::tensor(random.uniform(), torch::kDouble);
  }
};

TEST_CASE("random augmentation depends on seed, epoch and record, not on the batch") {
  const Noisy noisy;
  const SampleKey key{.seed = 5, .epoch = 2};
  const torch::Tensor whole = noisy.get_batch({0, 1, 2, 3}, key).tensor();
  CHECK(noisy.get_batch({3}, key).tensor()[0].equal(whole[3]));
  CHECK(noisy.get_batch({2, 0}, key).tensor()[0].equal(whole[2]));
  CHECK_FALSE(noisy.get_batch({0, 1, 2, 3}, {.seed = 5, .epoch = 3}).tensor().equal(whole));
  CHECK_FALSE(noisy.get_batch({0, 1, 2, 3}, {.seed = 6, .epoch = 2}).tensor().equal(whole));
  CHECK_FALSE(whole[0].equal(whole[1]));
}

TEST_CASE("an endless order changes records in another way in each epoch") {
  const AnyBatchSampler batches = BatchSampler(SequentialSampler(10), 5, false);
  SampledBatches source(std::make_shared<Noisy>(), RepeatBatchSampler(batches));
  source.start(0);
  std::vector<torch::Tensor> seen;
  for (int i = 0; i < 4; ++i) seen.push_back(source.next()->tensor());
  CHECK_FALSE(seen[2].equal(seen[0]));
  CHECK_FALSE(seen[3].equal(seen[1]));
}

TEST_CASE("an endless order that resumes within an epoch changes records as one that was never paused") {
  const auto order = [](std::int64_t skip) -> AnyBatchSampler {
    AnySampler sampler = RepeatSampler(ReproducibleShuffleSampler(SequentialSampler(10), 3));
    sampler = DistributedSampler(sampler, 2, 1);
    return SkipBatchSampler(BatchSampler(sampler, 2, false), skip);
  };
  SampledBatches whole(std::make_shared<Noisy>(), order(0), 5);
  whole.start(0);
  std::vector<torch::Tensor> seen;
  for (int i = 0; i < 12; ++i) seen.push_back(whole.next()->tensor());
  for (const std::int64_t skip : {1, 2, 3, 7}) {
    SampledBatches resumed(std::make_shared<Noisy>(), order(skip), 5);
    resumed.start(skip / 3);
    for (std::int64_t i = skip; i < 12; ++i) CHECK(resumed.next()->tensor().equal(seen[i]));
  }
}

TEST_CASE("sampled batches use the sampler unchanged") {
  const auto numbers = std::make_shared<Numbers>(4);
  const AnyBatchSampler batches = BatchSampler(SequentialSampler(4), 3, false);
  SampledBatches finite(numbers, ReproducibleShuffleBatchSampler(batches, 8));
  CHECK(finite.size() == 2);
  std::vector<std::vector<std::int64_t>> seen;
  for (const int epoch : {0, 1, 2, 3}) {
    finite.start(epoch);
    for (auto batch = finite.next(); batch; batch = finite.next()) seen.push_back(values(*batch));
    CHECK(seen.size() == 2u * (epoch + 1));
  }
  CHECK(std::count(seen.begin(), seen.end(), std::vector<std::int64_t>{3}) == 4);
  CHECK(std::count(seen.begin(), seen.end(), std::vector<std::int64_t>{0, 1, 2}) == 4);

  // An endless sampler chooses its own start, in any epoch.
  SampledBatches endless(numbers, SkipBatchSampler(RepeatBatchSampler(batches), 3));
  endless.start(7);
  CHECK(values(*endless.next()) == std::vector<std::int64_t>{3});
  CHECK(values(*endless.next()) == std::vector<std::int64_t>{0, 1, 2});
  const DataLoader loader(std::move(endless));
  CHECK_FALSE(loader.is_reproducible());
  CHECK(loader.size() == 2);
  CHECK_THROWS_AS(loader.batches(0), std::logic_error);
}

}  // namespace
}  // namespace det
