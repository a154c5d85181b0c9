// Batches do not depend on the starting step, the number of threads or the division of shards.
#include <ATen/Parallel.h>
#include <torch/types.h>

// Catch2 must follow LibTorch: both define CHECK.
#include <atomic>
#include <catch2/catch.hpp>

#include "common/base/clock.h"
#include "harness/src/data/batch_stream.h"
#include "tensors.h"

namespace det {
namespace {

using testing::values;
using Values = std::vector<std::int64_t>;

/// Each record is its number and a random draw. With `slow`, reading is slow enough to justify threads.
class SlowNumbers : public Dataset {
 public:
  explicit SlowNumbers(std::int64_t count, bool slow = false) : count_(count), slow_(slow) {}
  std::int64_t size() const override { return count_; }
  Batch get_batch(const std::vector<std::int64_t>& indices) const override { return get_batch(indices, {}); }
  Batch get_batch(const std::vector<std::int64_t>& indices, const SampleKey& key) const override {
    if (indices.front() == fail_at_) throw std::runtime_error("record " + std::to_string(fail_at_));
    // The stream times its first batches to decide whether to read ahead on a thread.
    for (const MonoTime end = mono_now() + std::chrono::milliseconds(2); slow_ && mono_now() < end;) {
    }
    Values drawn;
    for (const std::int64_t index : indices) drawn.push_back(key.random(index).below(1 << 20));
    return {torch::tensor(indices), torch::tensor(drawn)};
  }
  std::int64_t fail_at_ = -1;

 private:
  std::int64_t count_;
  bool slow_;
};

/// The numbers in the epoch, records and draws of at most `most` batches.
std::vector<Values> read(const DataLoader& loader, const StreamSpec& spec, std::int64_t step,
                         std::int64_t most) {
  BatchStream stream(loader, spec, step);
  CHECK(stream.last_batch_number() == -1);
  std::vector<Values> seen;
  for (std::int64_t i = 0; i < most; ++i) {
    const std::optional<Batch> batch = stream.next();
    if (!batch) break;
    seen.push_back({stream.last_batch_number()});
    for (const torch::Tensor& tensor : batch->unpack<2>()) {
      for (const std::int64_t value : values(tensor)) seen.back().push_back(value);
    }
  }
  return seen;
}

TEST_CASE("a stream is the same from any step of three epochs, with any number of workers") {
  const auto loader = [](std::int64_t workers, bool slow) {
    return DataLoader(SlowNumbers(50, slow), {.batch_size = 8, .shuffle = true, .num_workers = workers});
  };
  const StreamSpec spec{.seed = 5, .training = true};
  const std::vector<Values> expected = read(loader(0, false), spec, 0, 30);
  REQUIRE(expected.size() == 30);
  CHECK(expected[6][0] == 6);
  CHECK(expected[7][0] == 0);
  CHECK(expected[0] != expected[7]);
  for (const std::int64_t workers : {0, 1, 2, 4}) {
    for (std::int64_t step = 0; step <= 21; ++step) {
      const std::vector<Values> rest(expected.begin() + step, expected.end());
      CHECK(read(loader(workers, false), spec, step, 30 - step) == rest);
    }
    CHECK(read(loader(workers, true), spec, 0, 30) == expected);
  }
}

TEST_CASE("processes with many or few shards see the same batches") {
  for (const bool training : {true, false}) {
    const DataLoader loader(SlowNumbers(50),
                            {.batch_size = 4, .shuffle = true, .num_workers = training ? 2 : 0});
    std::vector<Values> whole;
    for (const std::int64_t count : {4, 2, 1}) {
      std::vector<std::vector<Values>> processes;
      for (std::int64_t first = 0; first < 4; first += count) {
        const StreamSpec spec{.seed = 3, .world = 4, .first = first, .count = count, .training = training};
        processes.push_back(read(loader, spec, 0, 12 * count));
        CHECK(BatchStream(loader, spec, 0).steps_per_epoch() == (training || first == 0 ? 4 : 3));
      }
      std::vector<Values> merged;  // step by step, shard by shard
      for (std::size_t step = 0; step < 12; ++step) {
        for (const std::vector<Values>& process : processes) {
          for (std::int64_t k = 0; k < count; ++k) {
            const std::size_t i = step * count + k;
            if (i < process.size()) merged.push_back(process[i]);
          }
        }
      }
      if (count == 4) whole = merged;
      CHECK(merged == whole);
      CHECK(merged.size() == (training ? 48 : 13));
    }
    CHECK(whole[5][0] == 5);
  }
}

TEST_CASE("the first batches of the epoch fill the gap of its last step") {
  const DataLoader loader(SlowNumbers(12), {.batch_size = 4});
  const auto seen = read(loader, {.world = 2, .first = 1, .training = true}, 1, 2);
  CHECK(seen[0][0] == 3);
  CHECK(Values(seen[0].begin() + 1, seen[0].begin() + 5) == Values{0, 1, 2, 3});
  CHECK(seen[1][0] == 1);
}

TEST_CASE("validation ends, and further reads report the end again") {
  const DataLoader loader(SlowNumbers(10), {.batch_size = 4, .num_workers = 2});
  BatchStream stream(loader, {}, 0);
  for (int i = 0; i < 3; ++i) CHECK(stream.next());
  CHECK_FALSE(stream.next());
  CHECK_FALSE(stream.next());
  CHECK(stream.last_batch_number() == 2);
}

TEST_CASE("a dataset's exception reaches the trainer at its batch, with the batch named") {
  for (const std::int64_t workers : {0, 1, 3}) {
    auto numbers = std::make_shared<SlowNumbers>(64, true);
    numbers->fail_at_ = 48;
    BatchStream stream(DataLoader(numbers, {.batch_size = 8, .num_workers = workers}), {}, 0);
    for (int i = 0; i < 6; ++i) CHECK(stream.next()->size() == 8);
    try {
      stream.next();
      FAIL("nothing was thrown");
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()) == "batch 6 of epoch 0 (records 48, 49, 50, 51, …): record 48");
      CHECK_THROWS_WITH(std::rethrow_if_nested(error), "record 48");
    }
  }
}

class TooFew : public Dataset {
 public:
  std::int64_t size() const override { return 10; }
  Batch get_batch(const std::vector<std::int64_t>&) const override { return torch::zeros({3}); }
};

TEST_CASE("a wrong record count and an out-of-range sampler are reported") {
  BatchStream few(DataLoader(TooFew(), {.batch_size = 4}), {}, 0);
  CHECK_THROWS_WITH(few.next(), Catch::Contains("gave 3 records where 4 were asked for"));
  BatchStream astray(DataLoader(SlowNumbers(3), {.sampler = SequentialSampler(4)}), {}, 0);
  for (int i = 0; i < 3; ++i) CHECK(astray.next());
  CHECK_THROWS_WITH(astray.next(), Catch::Contains("the sampler gave record 3 of 3"));
}

TEST_CASE("custom samplers, batch samplers and collate functions are used") {
  const DataLoader sampled(SlowNumbers(10),
                           {.batch_size = 2, .sampler = SkipSampler(SequentialSampler(10), 7)});
  CHECK(values(BatchStream(sampled, {}, 0).next()->data()) == Values{7, 8});
  const DataLoader batched(SlowNumbers(10), {.batch_sampler = ReproducibleShuffleBatchSampler(
                                                 BatchSampler(SequentialSampler(10), 5, false), 1)});
  BatchStream stream(batched, {.training = true}, 0);
  Values both = values(stream.next()->data());
  CHECK(both.size() == 5);
  const Values second = values(stream.next()->data());
  both.insert(both.end(), second.begin(), second.end());
  std::sort(both.begin(), both.end());
  CHECK(both == Values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});

  const Collate sum = [](const std::vector<Batch>& records) -> Batch {
    torch::Tensor all = torch::zeros({1}, torch::kLong);
    for (const Batch& record : records) all += record.data();
    return all;
  };
  const DataLoader collated(SlowNumbers(10), {.batch_size = 4, .num_workers = 2, .collate = sum});
  BatchStream sums(collated, {}, 0);
  for (const std::int64_t expected : {6, 22, 17})
    CHECK(sums.next()->tensor().item<std::int64_t>() == expected);
}

/// Each batch holds the number of threads of its operators. Batch 0 waits for the start of batch 1.
class Meeting : public Dataset {
 public:
  std::int64_t size() const override { return 2; }
  Batch get_batch(const std::vector<std::int64_t>& indices) const override {
    const bool first = indices.front() == 0;
    if (!first) second_began_ = true;
    for (const MonoTime end = mono_now() + std::chrono::seconds(20);
         first && !second_began_ && mono_now() < end;) {
    }
    return torch::tensor(
               {static_cast<std::int64_t>(second_began_), static_cast<std::int64_t>(at::get_num_threads())})
        .unsqueeze(0);
  }
  mutable std::atomic<bool> second_began_{false};
};

TEST_CASE("two workers read concurrently, each with single-threaded operators") {
  const int before = at::get_num_threads();
  BatchStream stream(DataLoader(std::make_shared<Meeting>(), {.num_workers = 2}), {}, 0);
  CHECK(values(stream.next()->tensor()) == Values{1, 1});
  CHECK(values(stream.next()->tensor()) == Values{1, 1});
  CHECK(at::get_num_threads() == before);
}

TEST_CASE("destroying a stream early ends its threads") {
  for (const std::int64_t workers : {0, 1, 4}) {
    BatchStream stream(DataLoader(SlowNumbers(1000, true), {.batch_size = 2, .num_workers = workers}), {}, 0);
    for (int i = 0; i < 6; ++i) CHECK(stream.next());
  }
}

/// Counts up, with `length` batches per epoch.
class Counter : public BatchSource {
 public:
  Counter(std::int64_t length, bool known, bool restarts = true)
      : length_(length), known_(known), restarts_(restarts) {}
  void start(std::int64_t epoch) override {
    epoch_ = epoch;
    if (restarts_) given_ = 0;
  }
  std::optional<Batch> next() override {
    if (given_ == length_) return std::nullopt;
    return torch::tensor({epoch_ * 100 + given_++});
  }
  std::optional<std::int64_t> size() const override { return known_ ? std::optional(length_) : std::nullopt; }

 private:
  std::int64_t length_;
  bool known_, restarts_;
  std::int64_t epoch_ = -1, given_ = 0;
};

Values read_source(const DataLoader& loader, const StreamSpec& spec, std::int64_t step, std::int64_t most) {
  BatchStream stream(loader, spec, step);
  Values seen;
  for (std::int64_t i = 0; i < most; ++i) {
    const auto batch = stream.next();
    if (!batch) break;
    seen.push_back(batch->tensor().item<std::int64_t>());
  }
  return seen;
}

TEST_CASE("a source restarts every epoch in training and ends in validation") {
  const auto loader = [](bool known, bool restarts = true) {
    return DataLoader(Counter(3, known, restarts));
  };
  CHECK(read_source(loader(true), {.training = true}, 0, 7) == Values{0, 1, 2, 100, 101, 102, 200});
  CHECK(read_source(loader(true), {.training = true}, 6, 4) == Values{200, 201, 202, 300});
  CHECK(read_source(loader(false), {.training = true}, 6, 4) == Values{0, 1, 2, 100});
  CHECK(read_source(loader(true), {}, 0, 7) == Values{0, 1, 2});
  // A source that cannot restart ends.
  CHECK(read_source(loader(false, false), {.training = true}, 0, 7) == Values{0, 1, 2});
  CHECK(BatchStream(loader(true), {.training = true}, 0).steps_per_epoch() == 3);
  CHECK(BatchStream(loader(true), {.world = 2, .count = 2, .training = true}, 0).steps_per_epoch() == 2);
  CHECK(BatchStream(loader(false), {.training = true}, 0).steps_per_epoch() == kEndless);
}

}  // namespace
}  // namespace det
