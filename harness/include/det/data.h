// Owns how data is read: Dataset (records by number), DataLoader (how they are batched), BatchSource (batches
// that come in an order of their own). The datasets that most trials need are in det/datasets.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "det/batch.h"
#include "det/record_random.h"
#include "det/samplers.h"

namespace det {

/// For what a batch is read: all that random changes to a record may depend on, beside its number.
struct SampleKey {
  std::uint64_t seed = 0;  ///< of the trial
  std::int64_t epoch = 0;
  RecordRandom random(std::int64_t record) const { return {seed, epoch, record}; }
};

/// Records by number. What is read must depend on the number alone (and, in a dataset that augments, on the
/// key): a trial that resumes, and one that runs elsewhere, must see the same data. Nothing of LibTorch's own
/// random state is used here. get_batch may run on another thread than the trial, and with num_workers > 1 on
/// several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// How many records there are; constant.
  virtual std::int64_t size() const = 0;
  /// The records at `indices` (each in [0, size)), in that order, in tensors of their own on the CPU.
  virtual Batch get_batch(const std::vector<std::int64_t>& indices) const = 0;
  /// The same for datasets that augment: record i is changed by key.random(i). This is what loaders call.
  virtual Batch get_batch(const std::vector<std::int64_t>& indices, const SampleKey& /*key*/) const {
    return get_batch(indices);
  }
};

/// A dataset read one record at a time: simple, and slower than get_batch on everything at once.
class SampleDataset : public Dataset {
 public:
  /// One record, without the batch dimension.
  virtual Batch get(std::int64_t index) const = 0;
  /// Stacks get() of each with default_collate.
  Batch get_batch(const std::vector<std::int64_t>& indices) const override;
  using Dataset::get_batch;
};

/// A dataset read one record at a time and changed at random.
class AugmentedDataset : public Dataset {
 public:
  /// One record, without the batch dimension. All random choices are drawn from `random`.
  virtual Batch get(std::int64_t index, RecordRandom& random) const = 0;
  /// Stacks get() of each with default_collate.
  Batch get_batch(const std::vector<std::int64_t>& indices, const SampleKey& key) const override;
  Batch get_batch(const std::vector<std::int64_t>& indices) const override {
    return get_batch(indices, SampleKey{});
  }
};

/// Batches in an order of their own: a stream, a queue, a generator, IterableDataset of PyTorch. They are
/// this process's batches: the source shards by itself, and skips by itself what was trained before
/// (context.get_initial_batch()). The platform cannot promise that such a trial resumes exactly: it must call
/// context.disable_dataset_reproducibility_checks(). Calls come one at a time, perhaps on another thread than
/// the trial.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Begins an epoch; called before the first next() and, in training, after next() has said that the epoch
  /// is over.
  virtual void start(std::int64_t /*epoch*/) {}
  /// The next batch, on the CPU; nullopt at the end of the epoch (never from an endless source).
  virtual std::optional<Batch> next() = 0;
  /// Batches of an epoch on this process, when that is known. Without it training has no epochs.
  virtual std::optional<std::int64_t> size() const { return std::nullopt; }
};

/// The records of a dataset in the order of a batch sampler, taken as it is: nothing is repeated, sharded or
/// skipped that the sampler does not. An endless sampler goes on through the epochs, another begins a pass
/// with each.
class SampledBatches final : public BatchSource {
 public:
  /// `seed` is for datasets that augment. Throws std::invalid_argument when either is missing.
  SampledBatches(std::shared_ptr<const Dataset> dataset, AnyBatchSampler batch_sampler,
                 std::uint64_t seed = 0);
  void start(std::int64_t epoch) override;
  std::optional<Batch> next() override;
  std::optional<std::int64_t> size() const override { return batch_sampler_->size(); }

 private:
  std::shared_ptr<const Dataset> dataset_;
  AnyBatchSampler batch_sampler_;
  SampleKey key_;
  std::int64_t pass_ = 0, position_ = 0;
};

/// Makes a batch of records (as default_collate does). Called on loader threads, on several at once.
using Collate = std::function<Batch(const std::vector<Batch>& records)>;

/// PyTorch's parameters, in its order.
struct DataLoaderOptions {
  std::int64_t batch_size = 1;  ///< records a batch on this process, >= 1
  bool shuffle = false;     ///< a new order each epoch, from the trial's seed and the epoch's number alone
  AnySampler sampler = {};  ///< the order of records; instead of shuffle. Epoch e is its pass e
  AnyBatchSampler batch_sampler = {};  ///< the batches; instead of batch_size, shuffle, sampler and drop_last
  std::int64_t num_workers = 0;  ///< threads that read batches ahead; 0: one where reading is slow, else none
  Collate collate = nullptr;     ///< none: what get_batch gives
  bool pin_memory =
      true;  ///< to a GPU by page-locked memory, so that copying goes on beside training; not on the CPU
  bool drop_last = false;                            ///< leave out the short batch at the end of an epoch
  std::optional<std::int64_t> prefetch_factor = {};  ///< batches read ahead by each worker; 2 unless given
};

/// A dataset and how it is batched. Holds no position: the trainer knows how many batches it has trained, and
/// every batch is a function of (seed, epoch, number in the epoch), so a trial resumes at any batch exactly.
/// The trainer deals the batches to the processes, repeats them for training and skips what was trained.
class DataLoader {
 public:
  /// Throws std::invalid_argument naming every problem: an empty dataset, sampler with shuffle, batch_sampler
  /// with batch_size, shuffle, sampler or drop_last, numbers that are too small, an endless sampler, no batch
  /// at all.
  DataLoader(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options);
  template <std::derived_from<Dataset> D>
  DataLoader(D dataset, const DataLoaderOptions& options)
      : DataLoader(std::make_shared<const D>(std::move(dataset)), options) {}
  /// Over a source of the trial's own. Throws std::invalid_argument for none.
  DataLoader(std::shared_ptr<BatchSource> source, bool pin_memory = true);
  template <std::derived_from<BatchSource> S>
  DataLoader(S source, bool pin_memory = true)
      : DataLoader(std::make_shared<S>(std::move(source)), pin_memory) {}

  /// Batches of an epoch over all processes; of a source those of this process, kEndless when it does not
  /// say.
  std::int64_t size() const;
  /// Whether the order is the platform's: false for a source.
  bool is_reproducible() const { return source_ == nullptr; }

  const std::shared_ptr<const Dataset>& dataset() const { return dataset_; }  ///< null for a source
  const std::shared_ptr<BatchSource>& source() const { return source_; }      ///< null for a dataset
  const DataLoaderOptions& options() const { return options_; }
  /// The batches of each epoch, before they are dealt to processes; `seed` is for shuffle. Not for a source.
  AnyBatchSampler batches(std::uint64_t seed) const;

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<BatchSource> source_;
  DataLoaderOptions options_;
};

}  // namespace det
