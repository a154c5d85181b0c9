// Owns samplers: the order in which a loader takes records, or batches of them. Standard library only.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace det {

/// What count() says of a sampler whose pass never ends.
inline constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

/// An order: pass 0, pass 1, … over some items, which are numbers of records (Sampler) or batches of them
/// (BatchSamplerBase). Positions are numbers, so that going on in the middle costs nothing: at(pass, i) is a
/// function of its arguments alone. Used by one thread at a time. The records of batches are numbers in [0,
/// size of the dataset).
template <typename Item>
class SamplerOf {
 public:
  virtual ~SamplerOf() = default;
  /// The length of an epoch: what len() of a sampler is in Python. The same for every pass.
  virtual std::int64_t size() const = 0;
  /// How many items a pass really has: more than size() for what repeats, less for what skips.
  virtual std::int64_t count() const { return size(); }
  /// Item i in [0, count()) of a pass >= 0.
  virtual Item at(std::int64_t pass, std::int64_t i) const = 0;
};

using Sampler = SamplerOf<std::int64_t>;
using BatchSamplerBase = SamplerOf<std::vector<std::int64_t>>;

/// A shared sampler of any kind. Made from a sampler by value or from a shared_ptr to one, so that orders are
/// put together as in Python: `AnySampler s = SequentialSampler(n); s = ReproducibleShuffleSampler(s, seed);
/// s = RepeatSampler(s);`
template <typename Item>
class AnySamplerOf {
 public:
  AnySamplerOf() = default;  ///< none
  template <std::derived_from<SamplerOf<Item>> S>
  AnySamplerOf(S sampler) : sampler_(std::make_shared<const S>(std::move(sampler))) {}
  template <std::derived_from<SamplerOf<Item>> S>
  AnySamplerOf(std::shared_ptr<S> sampler) : sampler_(std::move(sampler)) {}
  AnySamplerOf(std::shared_ptr<const SamplerOf<Item>> sampler) : sampler_(std::move(sampler)) {}

  explicit operator bool() const { return sampler_ != nullptr; }
  const SamplerOf<Item>* operator->() const { return sampler_.get(); }

 private:
  std::shared_ptr<const SamplerOf<Item>> sampler_;
};

using AnySampler = AnySamplerOf<std::int64_t>;
using AnyBatchSampler = AnySamplerOf<std::vector<std::int64_t>>;

// Everything below throws std::invalid_argument from its constructor for arguments that cannot work, among
// them no sampler.

/// 0, 1, …, records - 1.
class SequentialSampler final : public Sampler {
 public:
  explicit SequentialSampler(std::int64_t records);
  std::int64_t size() const override { return records_; }
  std::int64_t at(std::int64_t, std::int64_t i) const override { return i; }

 private:
  std::int64_t records_;
};

/// `batch_size` items of a sampler each; the last batch of a pass is short, or left out with `drop_last`.
class BatchSampler final : public BatchSamplerBase {
 public:
  BatchSampler(AnySampler sampler, std::int64_t batch_size, bool drop_last);
  std::int64_t size() const override { return batches(sampler_->size()); }
  std::int64_t count() const override;
  std::vector<std::int64_t> at(std::int64_t pass, std::int64_t i) const override;

 private:
  std::int64_t batches(std::int64_t items) const;
  AnySampler sampler_;
  std::int64_t batch_size_;
  bool drop_last_;
};

/// The passes of `sampler` one after another, for ever; pass p begins with the sampler's pass p. The size
/// stays.
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

/// The shard of one of `num_workers` processes: items rank, rank + num_workers, …. Of n items these are
/// n / num_workers + (n % num_workers > rank).
template <typename Item>
class BasicDistributedSampler final : public SamplerOf<Item> {
 public:
  BasicDistributedSampler(AnySamplerOf<Item> sampler, std::int64_t num_workers, std::int64_t rank);
  std::int64_t size() const override { return share(sampler_->size()); }
  std::int64_t count() const override;
  Item at(std::int64_t pass, std::int64_t i) const override;

 private:
  std::int64_t share(std::int64_t items) const;
  AnySamplerOf<Item> sampler_;
  std::int64_t num_workers_, rank_;
};

/// Every pass without its first `skip` items. The size stays: it is the epoch's. Costs nothing.
template <typename Item>
class BasicSkipSampler final : public SamplerOf<Item> {
 public:
  BasicSkipSampler(AnySamplerOf<Item> sampler, std::int64_t skip);
  std::int64_t size() const override { return sampler_->size(); }
  std::int64_t count() const override;
  Item at(std::int64_t pass, std::int64_t i) const override;

 private:
  AnySamplerOf<Item> sampler_;
  std::int64_t skip_;
};

/// Each pass of `sampler` in an order of its own, a function of the seed and the pass: Fisher and Yates's
/// shuffle on SplitMix64, the same on every machine and in every release. The sampler must not be endless:
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
  // The order of the pass asked last.
  mutable std::int64_t shuffled_pass_ = -1;
  mutable std::vector<std::int64_t> order_;
};

using RepeatSampler = BasicRepeatSampler<std::int64_t>;
using RepeatBatchSampler = BasicRepeatSampler<std::vector<std::int64_t>>;
using DistributedSampler = BasicDistributedSampler<std::int64_t>;
using DistributedBatchSampler = BasicDistributedSampler<std::vector<std::int64_t>>;
using SkipSampler = BasicSkipSampler<std::int64_t>;
using SkipBatchSampler = BasicSkipSampler<std::vector<std::int64_t>>;
using ReproducibleShuffleSampler = BasicReproducibleShuffleSampler<std::int64_t>;
using ReproducibleShuffleBatchSampler = BasicReproducibleShuffleSampler<std::vector<std::int64_t>>;

struct AdaptOptions {
  bool repeat = false;    ///< for training
  std::int64_t skip = 0;  ///< batches of this replica trained already
  std::int64_t num_replicas = 1;
  std::int64_t rank = 0;
};

/// A batch sampler of one process made one of many: repeated, then sharded, then skipped, in this order. For
/// loaders whose order is a trial's own (det::SampledBatches); a DataLoader does this by itself.
AnyBatchSampler adapt_batch_sampler(AnyBatchSampler batch_sampler, const AdaptOptions& options);

}  // namespace det
