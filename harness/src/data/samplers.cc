// Implementation of the samplers and of RecordRandom. Standard library only.
#include "det/samplers.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "common/base/random.h"
#include "det/record_random.h"

namespace det {
namespace {

void require(bool fits, const char* sampler, const std::string& what) {
  if (!fits) throw std::invalid_argument(std::string(sampler) + ": " + what);
}

/// Throws std::invalid_argument for a null or endless sampler: a shuffle and a repeat need its length.
template <typename Item>
void require_finite(const AnySamplerOf<Item>& sampler, const char* name) {
  require(static_cast<bool>(sampler), name, "there is no sampler to take from");
  require(sampler->count() != kEndless, name,
          "its sampler is endless (a repeated one): repeat after this, not before");
}

}  // namespace

RecordRandom::RecordRandom(std::uint64_t seed, std::int64_t epoch, std::int64_t record) {
  // A constant separates these streams from those of the shuffles, which use the same trial seed.
  constexpr std::uint64_t kAugment = 0x6175676d656e7400;
  Random of_epoch{seed ^ kAugment, static_cast<std::uint64_t>(epoch)};
  Random of_record{of_epoch.next(), static_cast<std::uint64_t>(record)};
  seed_ = of_record.next();
}

double RecordRandom::uniform() {
  Random random{seed_, counter_};
  const double drawn = random.uniform();
  counter_ = random.counter;
  return drawn;
}

std::int64_t RecordRandom::below(std::int64_t bound) {
  if (bound < 1) throw std::invalid_argument("RecordRandom::below: the bound is " + std::to_string(bound));
  Random random{seed_, counter_};
  const auto drawn = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
  counter_ = random.counter;
  return drawn;
}

SequentialSampler::SequentialSampler(std::int64_t records) : records_(records) {
  require(records >= 0, "SequentialSampler", "the number of records is " + std::to_string(records));
}

BatchSampler::BatchSampler(AnySampler sampler, std::int64_t batch_size, bool drop_last)
    : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {
  require(static_cast<bool>(sampler_), "BatchSampler", "there is no sampler to take from");
  require(batch_size >= 1, "BatchSampler",
          "batch_size must be at least 1, not " + std::to_string(batch_size));
}

std::int64_t BatchSampler::batches(std::int64_t items) const {
  return items / batch_size_ + (!drop_last_ && items % batch_size_ > 0 ? 1 : 0);
}

std::int64_t BatchSampler::count() const {
  const std::int64_t items = sampler_->count();
  return items == kEndless ? kEndless : batches(items);
}

std::vector<std::int64_t> BatchSampler::at(std::int64_t pass, std::int64_t i) const {
  const std::int64_t first = i * batch_size_;
  std::vector<std::int64_t> batch(std::min(batch_size_, sampler_->count() - first));
  for (std::size_t k = 0; k < batch.size(); ++k)
    batch[k] = sampler_->at(pass, first + static_cast<std::int64_t>(k));
  return batch;
}

template <typename Item>
BasicReproducibleShuffleSampler<Item>::BasicReproducibleShuffleSampler(AnySamplerOf<Item> sampler,
                                                                       std::uint64_t seed)
    : sampler_(std::move(sampler)), seed_(seed) {
  require_finite(sampler_, "ReproducibleShuffleSampler");
}

template <typename Item>
Item BasicReproducibleShuffleSampler<Item>::at(std::int64_t pass, std::int64_t i) const {
  if (pass != shuffled_pass_) {
    // Each pass has its own stream: the pass-th draw of the seed's generator seeds the shuffle. Any pass can
    // therefore be computed without the ones before it, as resuming from a checkpoint needs.
    Random stream{seed_, static_cast<std::uint64_t>(pass)};
    Random random{stream.next(), 0};
    order_.resize(sampler_->count());
    std::iota(order_.begin(), order_.end(), 0);
    // Fisher-Yates shuffle.
    for (std::int64_t k = static_cast<std::int64_t>(order_.size()) - 1; k > 0; --k) {
      std::swap(order_[k], order_[random.below(k + 1)]);
    }
    shuffled_pass_ = pass;
  }
  return sampler_->at(pass, order_[i]);
}

template <typename Item>
BasicRepeatSampler<Item>::BasicRepeatSampler(AnySamplerOf<Item> sampler) : sampler_(std::move(sampler)) {
  require_finite(sampler_, "RepeatSampler");
  require(sampler_->count() >= 1, "RepeatSampler", "its sampler is empty");
}

template <typename Item>
Item BasicRepeatSampler<Item>::at(std::int64_t pass, std::int64_t i) const {
  const std::int64_t count = sampler_->count();
  return sampler_->at(pass + i / count, i % count);
}

template <typename Item>
BasicDistributedSampler<Item>::BasicDistributedSampler(AnySamplerOf<Item> sampler, std::int64_t num_workers,
                                                       std::int64_t rank)
    : sampler_(std::move(sampler)), num_workers_(num_workers), rank_(rank) {
  require(static_cast<bool>(sampler_), "DistributedSampler", "there is no sampler to take from");
  require(num_workers >= 1 && rank >= 0 && rank < num_workers, "DistributedSampler",
          "rank " + std::to_string(rank) + " of " + std::to_string(num_workers) + " workers");
}

template <typename Item>
std::int64_t BasicDistributedSampler<Item>::share(std::int64_t items) const {
  return items / num_workers_ + (items % num_workers_ > rank_ ? 1 : 0);
}

template <typename Item>
std::int64_t BasicDistributedSampler<Item>::count() const {
  const std::int64_t items = sampler_->count();
  return items == kEndless ? kEndless : share(items);
}

template <typename Item>
Item BasicDistributedSampler<Item>::at(std::int64_t pass, std::int64_t i) const {
  return sampler_->at(pass, i * num_workers_ + rank_);
}

template <typename Item>
BasicSkipSampler<Item>::BasicSkipSampler(AnySamplerOf<Item> sampler, std::int64_t skip)
    : sampler_(std::move(sampler)), skip_(skip) {
  require(static_cast<bool>(sampler_), "SkipSampler", "there is no sampler to take from");
  require(skip >= 0, "SkipSampler", "skip must not be negative, as " + std::to_string(skip));
}

template <typename Item>
std::int64_t BasicSkipSampler<Item>::count() const {
  const std::int64_t items = sampler_->count();
  return items == kEndless ? kEndless : std::max<std::int64_t>(0, items - skip_);
}

template <typename Item>
Item BasicSkipSampler<Item>::at(std::int64_t pass, std::int64_t i) const {
  return sampler_->at(pass, i + skip_);
}

template class BasicRepeatSampler<std::int64_t>;
template class BasicRepeatSampler<std::vector<std::int64_t>>;
template class BasicDistributedSampler<std::int64_t>;
template class BasicDistributedSampler<std::vector<std::int64_t>>;
template class BasicSkipSampler<std::int64_t>;
template class BasicSkipSampler<std::vector<std::int64_t>>;
template class BasicReproducibleShuffleSampler<std::int64_t>;
template class BasicReproducibleShuffleSampler<std::vector<std::int64_t>>;

AnyBatchSampler adapt_batch_sampler(AnyBatchSampler batch_sampler, const AdaptOptions& options) {
  // The order matters: ranks share one endless sequence, and `skip` counts the batches of this rank.
  if (options.repeat) batch_sampler = RepeatBatchSampler(batch_sampler);
  batch_sampler = DistributedBatchSampler(batch_sampler, options.num_replicas, options.rank);
  return SkipBatchSampler(batch_sampler, options.skip);
}

}  // namespace det
