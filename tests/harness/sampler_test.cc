// The order of data is a pure function of (seed, epoch, step, rank, world).
#include "sampler.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

namespace det {
namespace {

using Indices = std::vector<std::int64_t>;

Indices whole_epoch(const SamplerSpec& spec, std::int64_t epoch) {
  Sampler sampler(spec);
  Indices all;
  for (std::int64_t step = 0; step < sampler.steps(); ++step) {
    for (const std::int64_t index : sampler.indices(epoch, step)) all.push_back(index);
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

TEST_CASE("without shuffle records come in order and the last batch is short") {
  const SamplerSpec spec{.records = 10, .batch_size = 4};
  Sampler sampler(spec);
  CHECK(sampler.steps() == 3);
  CHECK(sampler.indices(5, 2) == Indices{8, 9});
  CHECK(whole_epoch(spec, 0) == counted(10));
}

TEST_CASE("drop_last leaves the short batch out") {
  CHECK(whole_epoch({.records = 10, .batch_size = 4, .drop_last = true}, 0) == counted(8));
}

TEST_CASE("a shuffled epoch holds every record once, and epochs and seeds differ") {
  const SamplerSpec spec{.seed = 3, .records = 1000, .batch_size = 32, .shuffle = true};
  SamplerSpec other = spec;
  other.seed = 4;
  CHECK(sorted(whole_epoch(spec, 0)) == counted(1000));
  CHECK(whole_epoch(spec, 0) != counted(1000));
  CHECK(whole_epoch(spec, 0) != whole_epoch(spec, 1));
  CHECK(whole_epoch(spec, 0) != whole_epoch(other, 0));
}

TEST_CASE("a batch does not depend on what was asked before") {
  const SamplerSpec spec{.seed = 9, .records = 101, .batch_size = 7, .shuffle = true};
  Sampler walked(spec);
  std::vector<Indices> in_order;
  for (std::int64_t p = 0; p < 3 * walked.steps(); ++p) {
    in_order.push_back(walked.indices(p / walked.steps(), p % walked.steps()));
  }
  for (const std::int64_t p : {44, 0, 17, 31, 15, 14}) {
    Sampler fresh(spec);
    CHECK(fresh.indices(p / fresh.steps(), p % fresh.steps()) == in_order[p]);
  }
}

TEST_CASE("the order of a seed never changes between releases") {
  CHECK(whole_epoch({.seed = 1, .records = 8, .batch_size = 8, .shuffle = true}, 0) == Indices{4, 1, 7, 5, 3, 0, 6, 2});
  CHECK(whole_epoch({.seed = 1, .records = 8, .batch_size = 8, .shuffle = true}, 1) == Indices{7, 5, 4, 1, 2, 6, 0, 3});
}

TEST_CASE("ranks share an epoch without overlap when validating") {
  for (const std::int64_t world : {1, 2, 3, 7}) {
    Indices all;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      for (const std::int64_t index :
           whole_epoch({.records = 50, .batch_size = 4, .rank = rank, .world = world}, 0)) {
        all.push_back(index);
      }
    }
    CHECK(sorted(all) == counted(50));
  }
}

TEST_CASE("ranks have equally many steps when training, together every record") {
  for (const std::int64_t world : {1, 2, 3, 7}) {
    std::set<std::int64_t> seen, steps;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const SamplerSpec spec{.seed = 2, .records = 50, .batch_size = 4, .shuffle = true, .rank = rank,
                             .world = world, .equal_steps = true};
      steps.insert(Sampler(spec).steps());
      for (const std::int64_t index : whole_epoch(spec, 1)) seen.insert(index);
    }
    CHECK(steps.size() == 1);
    CHECK(seen.size() == 50);
  }
}

}  // namespace
}  // namespace det
