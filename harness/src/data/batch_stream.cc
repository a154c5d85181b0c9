// Batch delivery: reads batches ahead on worker threads and copies them to the device.
#include "harness/src/data/batch_stream.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <string>

#include "common/base/clock.h"
#include "harness/src/base/crash_report.h"
#include "harness/src/data/data_compat.h"
#include "harness/src/data/dealer.h"
#include "harness/src/data/ordered_workers.h"

namespace det {
namespace {

// Passing a batch between threads costs tens of microseconds, so batches that are cheaper to read are read on
// the training thread. The mean time of the first batches decides.
constexpr int kTimedBatches = 4;
constexpr std::chrono::microseconds kWorthAThread{500};

/// Description of a batch for error messages, with its first four records.
std::string batch_text(const Dealer::Deal& deal) {
  std::string text =
      "batch " + std::to_string(deal.number) + " of epoch " + std::to_string(deal.epoch) + " (records";
  for (std::size_t i = 0; i < std::min<std::size_t>(4, deal.records.size()); ++i) {
    text += (i > 0 ? ", " : " ") + std::to_string(deal.records[i]);
  }
  return text + (deal.records.size() > 4 ? ", …)" : ")");
}

Batch read_records(const DataLoader& loader, const std::vector<std::int64_t>& records, const SampleKey& key) {
  const Dataset& dataset = *loader.dataset();
  for (const std::int64_t record : records) {
    if (record < 0 || record >= dataset.size()) {
      throw std::out_of_range("the sampler gave record " + std::to_string(record) + " of " +
                              std::to_string(dataset.size()));
    }
  }
  // A custom collate function receives single records; otherwise the dataset reads all records at once.
  if (const Collate& collate = loader.options().collate) {
    std::vector<Batch> single;
    single.reserve(records.size());
    for (const std::int64_t record : records) {
      single.push_back(dataset.get_batch({record}, key).map([](const torch::Tensor& tensor) {
        return tensor.select(0, 0);
      }));
    }
    return collate(single);
  }
  Batch batch = dataset.get_batch(records, key);
  if (batch.size() != static_cast<std::int64_t>(records.size())) {
    throw std::runtime_error("Dataset::get_batch gave " +
                             (batch.size() > 0 ? std::to_string(batch.size()) : std::string("no")) +
                             " records where " + std::to_string(records.size()) + " were asked for");
  }
  return batch;
}

}  // namespace

class BatchStream::Reader {
 public:
  Reader(const DataLoader& loader, const StreamSpec& spec, std::int64_t step)
      : loader_(loader), spec_(spec), planned_(step * spec.count), given_(planned_) {
    if (step < 0)
      throw std::invalid_argument("a stream of batches cannot start at step " + std::to_string(step));
    // For a source, the dealer is built over a dummy sampler: it only validates the shards.
    AnyBatchSampler batches = BatchSampler(SequentialSampler(1), 1, false);
    if (loader.is_reproducible()) batches = loader.batches(spec.seed);
    dealer_.emplace(batches, DealSpec{spec.world, spec.first, spec.count, spec.training});
    if (!loader.is_reproducible()) source_epoch_ = steps() == kEndless ? 0 : step / steps();
    if (spec.device.is_cuda()) side_copy_.emplace(spec.device);
    const std::int64_t workers = loader.options().num_workers;
    if (workers > 0) {
      ahead_.emplace(workers, workers * loader.options().prefetch_factor.value_or(2));
    } else if (side_copy_) {
      ahead_.emplace(1, 2);  // the training thread is busy launching GPU work
    }
  }

  std::int64_t steps() const {
    if (loader_.is_reproducible()) return dealer_->steps();
    const std::int64_t size = loader_.size();
    return size == kEndless ? kEndless : std::max<std::int64_t>(1, (size + spec_.count - 1) / spec_.count);
  }

  std::optional<Batch> next() {
    std::optional<Batch> batch = side_copy_ ? next_on_gpu() : unwrap(next_on_cpu());
    if (!batch) return batch;
    ++given_, gave_ = true;
    if (!deals_.empty()) {
      last_deal_ = std::move(deals_.front());
      deals_.pop_front();
    }
    return batch;
  }

  void name_records() const {
    if (last_deal_)
      set_crash_records(last_deal_->epoch, last_deal_->records.data(), last_deal_->records.size());
    else
      set_crash_records(0, nullptr, 0);
  }

  std::int64_t last_batch_number() const {
    if (!gave_) return -1;
    const std::int64_t last = given_ - 1;
    // Batches of this process are consecutive shards of a step; the number counts the batches of all shards.
    return last / spec_.count % steps() * spec_.world + spec_.first + last % spec_.count;
  }

 private:
  using Workers = OrderedWorkers<std::optional<Batch>>;

  static std::optional<Batch> unwrap(Workers::Outcome outcome) {
    if (auto* error = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*error);
    return std::get<std::optional<Batch>>(std::move(outcome));
  }

  /// Returns the job that reads the next unplanned batch; null at the end. Called on the training thread
  /// only: samplers are not thread-safe.
  std::function<std::optional<Batch>()> plan() {
    const std::int64_t position = planned_++;
    if (!loader_.is_reproducible()) return [this] { return read_source(); };
    std::optional<Dealer::Deal> deal = dealer_->deal(position);
    if (!deal) return nullptr;
    deals_.push_back(std::make_shared<const Dealer::Deal>(std::move(*deal)));
    return [this, shared = deals_.back()] { return read_deal(*shared); };
  }

  /// Reads a batch of the dataset on a worker thread or the training thread. One LibTorch thread is used:
  /// parallelism comes from several workers.
  std::optional<Batch> read_deal(const Dealer::Deal& deal) const {
    const at::NoGradGuard no_grad;
    const compat::OneThread one_thread;
    const ReadingRecords reading(deal.epoch, deal.records);
    try {
      return pinned(read_records(loader_, deal.records, {.seed = spec_.seed, .epoch = deal.epoch}));
    } catch (const c10::Error& error) {
      std::throw_with_nested(std::runtime_error(batch_text(deal) + ": " + error.what_without_backtrace()));
    } catch (const std::exception& error) {
      std::throw_with_nested(std::runtime_error(batch_text(deal) + ": " + error.what()));
    }
  }

  /// Called on one thread at a time: a source is not thread-safe.
  std::optional<Batch> read_source() {
    const at::NoGradGuard no_grad;
    const compat::OneThread one_thread;
    BatchSource& source = *loader_.source();
    if (source_ended_) return std::nullopt;
    if (!source_started_) source.start(source_epoch_);
    std::optional<Batch> batch = source.next();
    // An endless stream restarts the source at the end of an epoch. A source that is empty right after
    // start() has ended for good.
    if (!batch && spec_.training && source_started_) {
      source.start(++source_epoch_);
      batch = source.next();
    }
    source_started_ = true;
    source_ended_ = !batch;
    if (batch) batch = pinned(*batch);
    return batch;
  }

  Batch pinned(Batch batch) const {
    if (!spec_.device.is_cuda() || !loader_.options().pin_memory) return batch;
    return batch.map([](const torch::Tensor& tensor) {
      return tensor.device().is_cpu() && !tensor.is_pinned() ? tensor.pin_memory() : tensor;
    });
  }

  /// Submits jobs until the workers' queue is full or the data ends.
  void fill() {
    while (!all_planned_ && ahead_->has_room()) {
      if (auto job = plan()) {
        ahead_->submit(std::move(job));
      } else {
        all_planned_ = true;
      }
    }
  }

  Workers::Outcome next_on_cpu() {
    if (ahead_) {
      fill();
      // An idle queue after fill() means that all batches have been taken.
      if (ahead_->idle()) return std::optional<Batch>();
      Workers::Outcome outcome = ahead_->take();
      fill();
      return outcome;
    }
    const MonoTime start = mono_now();
    const auto job = plan();
    std::optional<Batch> batch = job ? job() : std::nullopt;
    // The first batch is not representative: files are opened and the epoch is shuffled.
    if (timed_++ > 0 && timed_ <= kTimedBatches) spent_ += mono_now() - start;
    if (timed_ == kTimedBatches && spent_ > kWorthAThread * (kTimedBatches - 1)) {
      ahead_.emplace(1, 2);
      fill();
    }
    return batch;
  }

  /// Starts the copy to the device if the outcome is a batch.
  Workers::Outcome depart(Workers::Outcome outcome) {
    if (auto* batch = std::get_if<std::optional<Batch>>(&outcome); batch != nullptr && *batch) {
      *batch = side_copy_->depart(**batch);
    }
    return outcome;
  }

  std::optional<Batch> next_on_gpu() {
    Workers::Outcome outcome = copying_ ? std::move(*copying_) : depart(next_on_cpu());
    copying_.reset();
    std::optional<Batch> batch = unwrap(std::move(outcome));
    if (batch) side_copy_->arrive(*batch);
    // Starts copying the next batch if it has been read already; otherwise training would wait for the
    // reader.
    if (batch && ahead_->ready()) copying_ = depart(next_on_cpu());
    return batch;
  }

  const DataLoader loader_;
  const StreamSpec spec_;
  std::optional<Dealer> dealer_;  // for a source: only validates the shards
  std::int64_t planned_, given_;  // batches of this process since the start of training
  bool gave_ = false, all_planned_ = false;
  std::deque<std::shared_ptr<const Dealer::Deal>> deals_;  // planned and not given, in order
  std::shared_ptr<const Dealer::Deal> last_deal_;          // of the most recent batch

  std::int64_t source_epoch_ = 0;
  bool source_started_ = false, source_ended_ = false;

  int timed_ = 0;  // batches read on the training thread
  Duration spent_{0};
  std::optional<compat::SideCopy> side_copy_;
  std::optional<Workers::Outcome> copying_;
  std::optional<Workers> ahead_;  // last member: its threads use the others
};

BatchStream::BatchStream(const DataLoader& loader, const StreamSpec& spec, std::int64_t step)
    : reader_(std::make_unique<Reader>(loader, spec, step)) {}
BatchStream::~BatchStream() = default;
std::int64_t BatchStream::steps_per_epoch() const { return reader_->steps(); }
std::optional<Batch> BatchStream::next() { return reader_->next(); }
std::int64_t BatchStream::last_batch_number() const { return reader_->last_batch_number(); }
void BatchStream::name_records() const { reader_->name_records(); }

}  // namespace det
