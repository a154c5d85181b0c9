// Data access: Dataset (records by index), DataLoader (how records are batched), and BatchSource (batches in
// an order of their own). Ready-made datasets are in det/datasets.h.
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

/// Key of the random changes to a record: together with the record's index it determines them completely.
struct SampleKey {
  std::uint64_t seed = 0;  ///< the trial's seed
  std::int64_t epoch = 0;
  /// The random stream of record `record`.
  RecordRandom random(std::int64_t record) const { return {seed, epoch, record}; }
};

/// Records by index.
///
/// A record must depend only on its index (and, in a dataset with augmentation, on the key), so that a trial
/// that resumes or runs elsewhere sees the same data; do not use LibTorch's global random state. get_batch
/// may run on another thread than the trial, and on several threads at once with num_workers > 1.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Number of records. Constant.
  virtual std::int64_t size() const = 0;
  /// Returns the records at `indices` (each in [0, size())), in that order, in newly allocated tensors on the
  /// CPU.
  virtual Batch get_batch(const std::vector<std::int64_t>& indices) const = 0;
  /// The same for datasets with augmentation: record i is changed with key.random(i). Loaders call this
  /// overload. The default ignores the key.
  virtual Batch get_batch(const std::vector<std::int64_t>& indices, const SampleKey& /*key*/) const {
    return get_batch(indices);
  }
};

/// A dataset that is read one record at a time. Simple, but slower than a get_batch that reads all records at
/// once.
class SampleDataset : public Dataset {
 public:
  /// Returns one record, without the batch dimension.
  virtual Batch get(std::int64_t index) const = 0;
  /// Stacks the records with default_collate.
  Batch get_batch(const std::vector<std::int64_t>& indices) const override;
  using Dataset::get_batch;
};

/// A dataset that is read one record at a time, with random augmentation.
class AugmentedDataset : public Dataset {
 public:
  /// Returns one record, without the batch dimension. All random choices must be drawn from `random`.
  virtual Batch get(std::int64_t index, RecordRandom& random) const = 0;
  /// Stacks the records with default_collate.
  Batch get_batch(const std::vector<std::int64_t>& indices, const SampleKey& key) const override;
  Batch get_batch(const std::vector<std::int64_t>& indices) const override {
    return get_batch(indices, SampleKey{});
  }
};

/// Batches in an order of their own: a stream, a queue, a generator (PyTorch's IterableDataset).
///
/// The source delivers the batches of this process: it shards the data itself, and after a resume it skips
/// what was trained before (context.get_initial_batch()). The platform cannot replay such an order, so the
/// trial must call context.disable_dataset_reproducibility_checks(). Calls are serialized, but may come from
/// another thread than the trial.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Begins an epoch (from 0). Called before the first next() and, in training, after next() has returned the
  /// end of an epoch.
  virtual void start(std::int64_t /*epoch*/) {}
  /// Returns the next batch, on the CPU; nullopt at the end of the epoch (never from an endless source).
  virtual std::optional<Batch> next() = 0;
  /// Batches per epoch on this process, when known. Without it, training has no epochs.
  virtual std::optional<std::int64_t> size() const { return std::nullopt; }
};

/// The records of a dataset in the order of a batch sampler, without any repetition, sharding or skipping by
/// the platform. An endless sampler continues through the epochs; with any other sampler, epoch e is pass e.
class SampledBatches final : public BatchSource {
 public:
  /// `seed` is the seed of augmentation. Throws std::invalid_argument for a null dataset or sampler.
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

/// Makes a batch from single records, as default_collate does. Called on loader threads, several at once.
using Collate = std::function<Batch(const std::vector<Batch>& records)>;

/// Options of a DataLoader, in the order of torch.utils.data.DataLoader's parameters.
struct DataLoaderOptions {
  std::int64_t batch_size = 1;  ///< records per batch on this process, >= 1
  /// A new order each epoch, a function of the trial's seed and the epoch alone.
  bool shuffle = false;
  /// The order of records, in place of shuffle. Epoch e is pass e of the sampler.
  AnySampler sampler = {};
  /// The batches, in place of batch_size, shuffle, sampler and drop_last.
  AnyBatchSampler batch_sampler = {};
  /// Threads that read batches ahead. 0: one thread if reading is slow (or for a GPU), else none.
  std::int64_t num_workers = 0;
  Collate collate = nullptr;  ///< null: the dataset's get_batch
  /// Copy to the GPU through page-locked memory, so that copies overlap with training. No effect on the CPU.
  bool pin_memory = true;
  bool drop_last = false;  ///< omit the incomplete last batch of an epoch
  /// Batches that each worker reads ahead; 2 by default. Requires num_workers > 0.
  std::optional<std::int64_t> prefetch_factor = {};
};

/// A dataset and the way its records are batched.
///
/// A loader holds no position: every batch is a function of (seed, epoch, index in the epoch), so a trial
/// resumes exactly at any batch. The trainer shards the batches over the processes, repeats them in training,
/// and skips those already trained.
class DataLoader {
 public:
  /// Throws std::invalid_argument that lists every problem: an empty dataset; sampler with shuffle;
  /// batch_sampler with batch_size, shuffle, sampler or drop_last; numbers out of range; an endless sampler;
  /// options that yield no batch.
  DataLoader(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options);
  /// The same, taking the dataset by value.
  template <std::derived_from<Dataset> D>
  DataLoader(D dataset, const DataLoaderOptions& options)
      : DataLoader(std::make_shared<const D>(std::move(dataset)), options) {}
  /// A loader over a BatchSource. Throws std::invalid_argument for a null source.
  DataLoader(std::shared_ptr<BatchSource> source, bool pin_memory = true);
  /// The same, taking the source by value.
  template <std::derived_from<BatchSource> S>
  DataLoader(S source, bool pin_memory = true)
      : DataLoader(std::make_shared<S>(std::move(source)), pin_memory) {}

  /// Batches per epoch, over all processes. For a source: batches of this process, or kEndless when its size
  /// is unknown.
  std::int64_t size() const;
  /// Whether the platform can replay the order of the batches; false for a source.
  bool is_reproducible() const { return source_ == nullptr; }

  const std::shared_ptr<const Dataset>& dataset() const { return dataset_; }  ///< null for a source
  const std::shared_ptr<BatchSource>& source() const { return source_; }      ///< null for a dataset
  const DataLoaderOptions& options() const { return options_; }
  /// The batches of each pass, before they are sharded; `seed` is the seed of shuffling. Throws
  /// std::logic_error for a source.
  AnyBatchSampler batches(std::uint64_t seed) const;

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<BatchSource> source_;
  DataLoaderOptions options_;
};

}  // namespace det
