// Datasets that are read record by record, and validation of DataLoader options.
#include "det/data.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace det {

Batch SampleDataset::get_batch(const std::vector<std::int64_t>& indices) const {
  std::vector<Batch> records;
  records.reserve(indices.size());
  for (const std::int64_t index : indices) records.push_back(get(index));
  return default_collate(records);
}

Batch AugmentedDataset::get_batch(const std::vector<std::int64_t>& indices, const SampleKey& key) const {
  std::vector<Batch> records;
  records.reserve(indices.size());
  for (const std::int64_t index : indices) {
    // A stream per record: the result does not depend on the batch that contains the record.
    RecordRandom random = key.random(index);
    records.push_back(get(index, random));
  }
  return default_collate(records);
}

SampledBatches::SampledBatches(std::shared_ptr<const Dataset> dataset, AnyBatchSampler batch_sampler,
                               std::uint64_t seed)
    : dataset_(std::move(dataset)), batch_sampler_(std::move(batch_sampler)), key_{.seed = seed} {
  if (dataset_ == nullptr) throw std::invalid_argument("SampledBatches: there is no dataset");
  if (!batch_sampler_) throw std::invalid_argument("SampledBatches: there is no batch sampler");
}

void SampledBatches::start(std::int64_t epoch) {
  // An endless sampler continues in pass 0; any other begins the pass of the epoch.
  const bool endless = batch_sampler_->count() == kEndless;
  key_.epoch = epoch;
  pass_ = endless ? 0 : epoch;
  position_ = 0;
}

std::optional<Batch> SampledBatches::next() {
  if (position_ >= batch_sampler_->count()) return std::nullopt;
  SampleKey key = key_;
  // start() is called once, at any batch, so the order tells the epoch.
  if (batch_sampler_->count() == kEndless) key.epoch = batch_sampler_->epoch_of(position_);
  return dataset_->get_batch(batch_sampler_->at(pass_, position_++), key);
}

namespace {

/// Returns all problems of the options, not considering the dataset.
std::vector<std::string> problems_of(const DataLoaderOptions& options) {
  std::vector<std::string> problems;
  const auto refuse = [&](bool wrong, const std::string& what) {
    if (wrong) problems.push_back(what);
  };
  refuse(options.sampler && options.shuffle,
         "shuffle cannot go with sampler, which is the order: wrap it in a ReproducibleShuffleSampler");
  refuse(options.batch_sampler &&
             (options.batch_size != 1 || options.shuffle || options.sampler || options.drop_last),
         "batch_sampler cannot go with batch_size, shuffle, sampler or drop_last: it is all of these");
  refuse(!options.batch_sampler && options.batch_size < 1,
         "batch_size must be at least 1, not " + std::to_string(options.batch_size));
  refuse(options.num_workers < 0, "num_workers must not be negative, as " +
                                      std::to_string(options.num_workers) +
                                      "; 0 reads ahead on one thread where that pays");
  refuse(options.prefetch_factor && options.num_workers == 0,
         "prefetch_factor is for workers: give num_workers too");
  refuse(options.prefetch_factor && *options.prefetch_factor < 1,
         "prefetch_factor must be at least 1, not " + std::to_string(options.prefetch_factor.value_or(0)));
  constexpr const char* kRepeats =
      " is endless: the trainer repeats by itself (an order of your own is a det::SampledBatches)";
  refuse(options.sampler && options.sampler->count() == kEndless, std::string("sampler") + kRepeats);
  refuse(options.batch_sampler && options.batch_sampler->count() == kEndless,
         std::string("batch_sampler") + kRepeats);
  return problems;
}

[[noreturn]] void refuse_loader(const std::vector<std::string>& problems) {
  std::string text = "DataLoader: ";
  for (const std::string& problem : problems) text += (&problem == problems.data() ? "" : "; ") + problem;
  throw std::invalid_argument(text);
}

}  // namespace

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options)
    : dataset_(std::move(dataset)), options_(options) {
  std::vector<std::string> problems = problems_of(options_);
  if (dataset_ == nullptr || dataset_->size() < 1) problems.insert(problems.begin(), "the dataset is empty");
  if (!problems.empty()) refuse_loader(problems);
  // The options are valid but yield no batch: find the reason.
  if (size() >= 1) return;
  if (options_.batch_sampler) refuse_loader({"batch_sampler gives no batch"});
  const std::int64_t records = options_.sampler ? options_.sampler->count() : dataset_->size();
  if (records < 1) refuse_loader({"sampler gives no record"});
  refuse_loader({"drop_last leaves no batch of " + std::to_string(options_.batch_size) + " in " +
                 std::to_string(records) + " records"});
}

DataLoader::DataLoader(std::shared_ptr<BatchSource> source, bool pin_memory) : source_(std::move(source)) {
  if (source_ == nullptr) refuse_loader({"there is no source"});
  options_.pin_memory = pin_memory;
}

std::int64_t DataLoader::size() const {
  if (source_ != nullptr) return source_->size().value_or(kEndless);
  return batches(0)->count();
}

AnyBatchSampler DataLoader::batches(std::uint64_t seed) const {
  if (source_ != nullptr) throw std::logic_error("DataLoader::batches: a source has an order of its own");
  if (options_.batch_sampler) return options_.batch_sampler;
  AnySampler records = options_.sampler;
  if (!records) records = SequentialSampler(dataset_->size());
  if (options_.shuffle) records = ReproducibleShuffleSampler(records, seed);
  return BatchSampler(records, options_.batch_size, options_.drop_last);
}

}  // namespace det
