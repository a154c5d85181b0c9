// Samplers: the order in which a loader reads records, or batches of records. Standard library only.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace det {

/// SamplerOf::count() of a sampler with endless passes. As an item count it means "unlimited".
inline constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

/// A sequence of passes (0, 1, …) over items: record indices (Sampler) or lists of them (BatchSamplerBase).
///
/// at(pass, i) is a function of its arguments alone, so resuming in the middle of a pass costs nothing.
/// Record indices are in [0, size of the dataset). Used by one thread at a time.
template <typename Item>
class SamplerOf {
 public:
  virtual ~SamplerOf() = default;
  /// Items of an epoch: Python's len(sampler). The same for every pass.
  virtual std::int64_t size() const = 0;
  /// Items of a pass: more than size() for a sampler that repeats, fewer for one that skips.
  virtual std::int64_t count() const { return size(); }
  /// Item i, in [0, count()), of a pass >= 0.
  virtual Item at(std::int64_t pass, std::int64_t i) const = 0;
  /// The epoch, from 0, of item i of an endless sampler.
  virtual std::int64_t epoch_of(std::int64_t i) const { return i / std::max<std::int64_t>(size(), 1); }
};

/// Orders of records, and orders of batches of records.
using Sampler = SamplerOf<std::int64_t>;
using BatchSamplerBase = SamplerOf<std::vector<std::int64_t>>;

/// Shared ownership of a sampler of any type. Converts from a sampler by value or from a shared_ptr, so
/// samplers compose as in Python:
///
///   AnySampler sampler = SequentialSampler(records);
///   sampler = ReproducibleShuffleSampler(sampler, seed);
///   sampler = RepeatSampler(sampler);
template <typename Item>
class AnySamplerOf {
 public:
  AnySamplerOf() = default;  ///< no sampler
  template <std::derived_from<SamplerOf<Item>> S>
  AnySamplerOf(S sampler) : sampler_(std::make_shared<const S>(std::move(sampler))) {}
  template <std::derived_from<SamplerOf<Item>> S>
  AnySamplerOf(std::shared_ptr<S> sampler) : sampler_(std::move(sampler)) {}
  AnySamplerOf(std::shared_ptr<const SamplerOf<Item>> sampler) : sampler_(std::move(sampler)) {}

  /// False for an empty AnySampler, which must not be dereferenced.
  explicit operator bool() const { return sampler_ != nullptr; }
  const SamplerOf<Item>* operator->() const { return sampler_.get(); }

 private:
  std::shared_ptr<const SamplerOf<Item>> sampler_;
};

/// A sampler of records, and a sampler of batches.
using AnySampler = AnySamplerOf<std::int64_t>;
using AnyBatchSampler = AnySamplerOf<std::vector<std::int64_t>>;

// Constructors of the samplers below throw std::invalid_argument for invalid arguments, including a missing
// sampler.

/// Visits the records 0, 1, …, records - 1 in order; `records` >= 0.
class SequentialSampler final : public Sampler {
 public:
  explicit SequentialSampler(std::int64_t records);
  std::int64_t size() const override { return records_; }
  std::int64_t at(std::int64_t, std::int64_t i) const override { return i; }

 private:
  std::int64_t records_;
};

/// Groups the items of a sampler into batches of `batch_size` >= 1. The last batch of a pass may be smaller;
/// `drop_last` omits it then.
class BatchSampler final : public BatchSamplerBase {
 public:
  BatchSampler(AnySampler sampler, std::int64_t batch_size, bool drop_last);
  std::int64_t size() const override { return batches(sampler_->size()); }
  std::int64_t count() const override;
  std::vector<std::int64_t> at(std::int64_t pass, std::int64_t i) const override;
  std::int64_t epoch_of(std::int64_t i) const override { return sampler_->epoch_of(i * batch_size_); }

 private:
  std::int64_t batches(std::int64_t items) const;
  AnySampler sampler_;
  std::int64_t batch_size_;
  bool drop_last_;
};

/// Repeats the passes of `sampler` endlessly; pass p starts with the sampler's pass p. size() is that of
/// `sampler`, which must be finite and not empty.
template <typename Item>
class BasicRepeatSampler final : public SamplerOf<Item> {
 public:
  explicit BasicRepeatSampler(AnySamplerOf<Item> sampler);
  std::int64_t size() const override { return sampler_->size(); }
  std::int64_t count() const override { return kEndless; }
  Item at(std::int64_t pass, std::int64_t i) const override;

 private:
  AnySamplerOf<Item> sampler_;
};

/// The shard of one of `num_workers` processes: items rank, rank + num_workers, …; 0 <= rank < num_workers.
/// With n items the size is n / num_workers, plus one if n % num_workers > rank.
template <typename Item>
class BasicDistributedSampler final : public SamplerOf<Item> {
 public:
  BasicDistributedSampler(AnySamplerOf<Item> sampler, std::int64_t num_workers, std::int64_t rank);
  std::int64_t size() const override { return share(sampler_->size()); }
  std::int64_t count() const override;
  Item at(std::int64_t pass, std::int64_t i) const override;
  std::int64_t epoch_of(std::int64_t i) const override {
    return sampler_->epoch_of(i * num_workers_ + rank_);
  }

 private:
  std::int64_t share(std::int64_t items) const;
  AnySamplerOf<Item> sampler_;
  std::int64_t num_workers_, rank_;
};

/// Skips the first `skip` >= 0 items of every pass, at no cost. size() is that of `sampler`: the length of an
/// epoch.
template <typename Item>
class BasicSkipSampler final : public SamplerOf<Item> {
 public:
  BasicSkipSampler(AnySamplerOf<Item> sampler, std::int64_t skip);
  std::int64_t size() const override { return sampler_->size(); }
  std::int64_t count() const override;
  Item at(std::int64_t pass, std::int64_t i) const override;
  std::int64_t epoch_of(std::int64_t i) const override { return sampler_->epoch_of(i + skip_); }

 private:
  AnySamplerOf<Item> sampler_;
  std::int64_t skip_;
};

/// Shuffles each pass of `sampler` by the Fisher-Yates algorithm with SplitMix64 random numbers. The order is
/// a function of the seed and the pass, the same on every machine and in every release. The first access to a
/// pass computes its order in O(count()) time and memory; not thread-safe. The sampler must not be endless:
/// shuffle before repeating.
template <typename Item>
class BasicReproducibleShuffleSampler final : public SamplerOf<Item> {
 public:
  BasicReproducibleShuffleSampler(AnySamplerOf<Item> sampler, std::uint64_t seed);
  std::int64_t size() const override { return sampler_->size(); }
  std::int64_t count() const override { return sampler_->count(); }
  Item at(std::int64_t pass, std::int64_t i) const override;

 private:
  AnySamplerOf<Item> sampler_;
  std::uint64_t seed_;
  // Order of the most recently used pass: a cache of at().
  mutable std::int64_t shuffled_pass_ = -1;
  mutable std::vector<std::int64_t> order_;
};

/// The samplers above for records (RepeatSampler, …) and for batches (RepeatBatchSampler, …).
using RepeatSampler = BasicRepeatSampler<std::int64_t>;
using RepeatBatchSampler = BasicRepeatSampler<std::vector<std::int64_t>>;
using DistributedSampler = BasicDistributedSampler<std::int64_t>;
using DistributedBatchSampler = BasicDistributedSampler<std::vector<std::int64_t>>;
using SkipSampler = BasicSkipSampler<std::int64_t>;
using SkipBatchSampler = BasicSkipSampler<std::vector<std::int64_t>>;
using ReproducibleShuffleSampler = BasicReproducibleShuffleSampler<std::int64_t>;
using ReproducibleShuffleBatchSampler = BasicReproducibleShuffleSampler<std::vector<std::int64_t>>;

/// Options of adapt_batch_sampler().
struct AdaptOptions {
  bool repeat = false;    ///< repeat the passes endlessly, for training
  std::int64_t skip = 0;  ///< batches that this replica has already trained
  /// Number of processes, and index of this one.
  std::int64_t num_replicas = 1;
  std::int64_t rank = 0;
};

/// Adapts a batch sampler of one process to several: repeats, then shards, then skips. For loaders with a
/// custom order (det::SampledBatches); a DataLoader does this itself.
AnyBatchSampler adapt_batch_sampler(AnyBatchSampler batch_sampler, const AdaptOptions& options);

}  // namespace det
