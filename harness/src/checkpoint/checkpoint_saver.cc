// Checkpoint saver: a snapshot in memory, written to disk by a background thread.
#include "harness/src/checkpoint/checkpoint_saver.h"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include "common/base/files.h"
#include "common/base/queue.h"
#include "common/base/random.h"
#include "common/base/result.h"
#include "harness/src/base/storage_full.h"
#include "harness/src/checkpoint/checkpoint_dir.h"
#include "harness/src/checkpoint/checkpoint_parts.h"
#include "harness/src/checkpoint/generators.h"
#include "harness/src/checkpoint/snapshot.h"
#include "harness/src/checkpoint/state.h"

namespace det {
namespace {

constexpr char kStateDictFile[] = "state_dict.pth";
constexpr std::size_t kUuidSize = 36;

std::string new_uuid() {
  std::random_device entropy;
  Random random{std::uint64_t{entropy()} << 32 | entropy(), std::uint64_t{entropy()}};
  return random.uuid();
}

/// A request of the training thread to the writing thread.
struct Job {
  enum class Kind { kWrite, kCommit, kDrop } kind = Kind::kWrite;
  bool commit = true;  ///< kWrite: also commit
  std::string storage, model_dir;
  CheckpointOwner owner;
  std::shared_ptr<const storage::Bucket> bucket;
  std::vector<std::string> code;
  std::map<std::string, std::string> texts;
  CheckpointRecord record;
};

/// A result of the writing thread: files written (in `directory`), checkpoint committed or dropped, or a
/// failure.
struct News {
  enum class Kind { kWritten, kDone, kDropped, kFailed } kind = Kind::kFailed;
  std::string directory;
  Status failure;  ///< kFailed
  CheckpointRecord record;
};

/// The writing thread's side: performs jobs and keeps the open checkpoint between kWrite and kCommit.
class Worker {
 public:
  Worker(Snapshot& snapshot, const PartWriter& parts) : snapshot_(snapshot), parts_(parts) {}

  News run(Job job) {
    News news;
    Status status;
    try {
      status = attempt(std::move(job), news);
    } catch (const std::exception& error) {
      status = fail(Code::kUnavailable, error.what());
    }
    if (!status) news.kind = News::Kind::kFailed, news.failure = status;
    if (news.kind != News::Kind::kWritten) writer_.reset();  // removes uncommitted files
    return news;
  }

 private:
  Status attempt(Job job, News& news) {
    // kWrite commits at once when there are no callbacks; otherwise kCommit follows when they have run.
    news.kind = News::Kind::kDropped;
    if (job.kind == Job::Kind::kDrop) return {};
    if (job.kind == Job::Kind::kWrite) {
      TRY(write(job));
      record_ = std::move(job.record);
      news.kind = News::Kind::kWritten, news.directory = writer_->directory();
      if (!job.commit) return {};
    }
    TRY_ASSIGN(record_.resources, writer_->commit());
    // Each upload replaces the local copy of the previous checkpoint: the disk needs room for two.
    if (bucket_) (void)remove_tree(std::exchange(copy_, storage_ + "/" + record_.uuid));
    news.kind = News::Kind::kDone, news.record = std::move(record_);
    return {};
  }

  Status write(const Job& job) {
    TRY_ASSIGN(CheckpointWriter writer,
               CheckpointWriter::create(job.storage, job.record.uuid, job.owner, job.bucket));
    writer_.emplace(std::move(writer));
    bucket_ = job.bucket != nullptr, storage_ = job.storage;
    // The CRC of the large file is computed while it is written, so commit() need not read it again.
    TRY_ASSIGN(const std::uint64_t crc, snapshot_.write(writer_->directory() + "/" + kStateDictFile));
    writer_->note(kStateDictFile, crc);
    for (const auto& [name, text] : job.texts) TRY(writer_->write(name, text));
    if (parts_.active()) TRY(parts_.await_all(writer_->directory()));
    return writer_->copy(job.model_dir, job.code, "code");
  }

  Snapshot& snapshot_;
  const PartWriter& parts_;
  std::optional<CheckpointWriter> writer_;
  CheckpointRecord record_;
  bool bucket_ = false;
  // With a bucket: the local copy of the newest checkpoint, which is kept.
  std::string storage_, copy_;
};

}  // namespace

class CheckpointSaver::Impl {
 public:
  Impl(const RunInfo& run, const WrappedObjects& wrapped)
      : run_(run), wrapped_(wrapped), parts_(run, wrapped), snapshot_(run.device) {
    if (run.distributed->is_chief()) thread_ = std::thread([this] { work(); });
  }
  ~Impl() {
    jobs_.close();
    if (thread_.joinable()) thread_.join();
  }

  std::string save(const TrialState& state) {
    // There is one snapshot buffer, so a previous save must be finished before it is overwritten.
    wait();
    // The chief alone runs the hooks below, after its generators have been saved.
    const GeneratorGuard unchanged(run_.device);
    const std::vector<std::string> generators = exchange();
    if (parts_.active()) parts_.save(uuid_);
    if (!thread_.joinable()) return uuid_;
    Job job;
    job.record.uuid = uuid_;
    job.record.steps_completed = state.progress.steps_completed;
    job.record.metadata = checkpoint_metadata(state);
    for (const auto& [name, callback] : wrapped_.callbacks)
      callback->on_checkpoint_save_start(job.record.metadata);
    // Callbacks may change metadata, but not the number of steps.
    job.record.metadata["steps_completed"] = state.progress.steps_completed;
    job.commit = wrapped_.callbacks.empty();
    job.storage = run_.info.checkpoint_dir;
    job.model_dir = run_.info.model_dir;
    job.bucket = run_.info.bucket;
    job.owner = {run_.info.cluster_id, run_.info.trial_id, run_.info.run};
    job.code = run_.code;
    job.texts = checkpoint_texts(run_.info, state, job.record.metadata);
    snapshot_.take(collect_state(wrapped_, generators));
    ask(std::move(job));
    return uuid_;
  }

  std::vector<CheckpointRecord> finished() {
    if (news_count_.load(std::memory_order_acquire) > 0) take_news();
    // The chief waits for the parts of all ranks: one that cannot write its part ends, which the chief sees.
    if (!thread_.joinable() && parts_.failed()) wait();
    std::vector<CheckpointRecord> records;
    while (!told_.empty()) {
      if (told_.front().kind == News::Kind::kFailed && !records.empty()) break;  // reported by the next call
      News news = std::move(told_.front());
      told_.erase(told_.begin());
      if (news.kind == News::Kind::kFailed) saved_or_throw(news.failure, "the checkpoint was not saved");
      records.push_back(std::move(news.record));
    }
    return records;
  }

  void wait() {
    while (under_way_) take_news();
    const Status part = parts_.wait();
    // On the chief the writing thread reports it.
    if (!part && !thread_.joinable()) told_.push_back({.failure = part});
  }

 private:
  void work() {
    // Lower priority than training threads, which wait for each other in collectives: on a contended core
    // this thread gets about a quarter.
    constexpr int kNice = 5;
    (void)::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNice);
    Worker worker(snapshot_, parts_);
    while (std::optional<Job> job = jobs_.pop()) {
      News news = worker.run(std::move(*job));
      // The counter lets finished() poll without taking the queue's lock.
      news_count_.fetch_add(1, std::memory_order_release);
      (void)news_.push(std::move(news));
    }
  }

  void ask(Job job) {
    under_way_ = true;
    (void)jobs_.push(std::move(job));
  }

  /// Waits for one result of the writing thread and handles it.
  void take_news() {
    std::optional<News> news = news_.pop();
    news_count_.fetch_sub(1, std::memory_order_relaxed);
    under_way_ = false;
    if (news->kind == News::Kind::kWritten) {
      try {
        // User code runs here, on the training thread, between writing and committing.
        const GeneratorGuard unchanged(run_.device);
        for (const auto& [name, callback] : wrapped_.callbacks)
          callback->on_checkpoint_write_end(news->directory);
      } catch (...) {
        ask({.kind = Job::Kind::kDrop});
        throw;
      }
      ask({.kind = Job::Kind::kCommit});
    } else if (news->kind != News::Kind::kDropped) {
      told_.push_back(std::move(*news));
    }
  }

  /// Gathers the generator states of all ranks in one exchange, and sets uuid_ to the chief's choice.
  std::vector<std::string> exchange() {
    // Every rank proposes a uuid in front of its bytes; the chief's is used.
    std::string mine = new_uuid() + generator_bytes(run_.device);
    std::vector<std::string> all;
    if (run_.distributed->size() > 1) {
      all = run_.distributed->allgather_bytes(mine);
    } else {
      all.push_back(std::move(mine));
    }
    uuid_ = all.at(0).substr(0, kUuidSize);
    for (std::string& bytes : all) bytes.erase(0, kUuidSize);
    return all;
  }

  const RunInfo& run_;
  const WrappedObjects& wrapped_;
  PartWriter parts_;
  Snapshot snapshot_;
  std::string uuid_;
  bool under_way_ = false;  ///< the writing thread has an unfinished job
  std::vector<News> told_;  ///< kDone and kFailed, for finished()
  std::atomic<int> news_count_{0};
  Queue<Job> jobs_{2};
  Queue<News> news_{2};
  std::thread thread_;
};

CheckpointSaver::CheckpointSaver(const RunInfo& run, const WrappedObjects& wrapped)
    : impl_(std::make_unique<Impl>(run, wrapped)) {}
CheckpointSaver::~CheckpointSaver() = default;
std::string CheckpointSaver::save(const TrialState& state) { return impl_->save(state); }
std::vector<CheckpointRecord> CheckpointSaver::finished() { return impl_->finished(); }
void CheckpointSaver::wait() { impl_->wait(); }

}  // namespace det
