// Owns the order of data.
#include "sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace det {

Sampler::Sampler(const SamplerSpec& spec)
    : spec_(spec),
      batches_(spec.drop_last ? spec.records / spec.batch_size
                              : (spec.records + spec.batch_size - 1) / spec.batch_size) {}

std::int64_t Sampler::steps() const {
  return spec_.equal_steps ? (batches_ + spec_.world - 1) / spec_.world
                           : (batches_ - spec_.rank + spec_.world - 1) / spec_.world;
}

std::vector<std::int64_t> Sampler::indices(std::int64_t epoch, std::int64_t step) {
  if (spec_.shuffle && shuffled_epoch_ != epoch) shuffle_for(epoch);
  const std::int64_t batch = (step * spec_.world + spec_.rank) % batches_;
  const std::int64_t first = batch * spec_.batch_size;
  std::vector<std::int64_t> records(std::min(spec_.batch_size, spec_.records - first));
  if (spec_.shuffle) {
    std::copy_n(order_.begin() + first, records.size(), records.begin());
  } else {
    std::iota(records.begin(), records.end(), first);
  }
  return records;
}

void Sampler::shuffle_for(std::int64_t epoch) {
  // The epoch takes a stream of its own: the epoch-th draw of the seed's generator is the seed of the shuffle.
  Random stream{spec_.seed, static_cast<std::uint64_t>(epoch)};
  Random random{stream.next(), 0};
  order_.resize(spec_.records);
  std::iota(order_.begin(), order_.end(), 0);
  for (std::int64_t i = spec_.records - 1; i > 0; --i) {
    std::swap(order_[i], order_[random.below(i + 1)]);
  }
  shuffled_epoch_ = epoch;
}

}  // namespace det
