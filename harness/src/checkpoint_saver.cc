// Owns saving behind training's back.
#include "checkpoint_saver.h"

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

#include "base/files.h"
#include "base/queue.h"
#include "base/random.h"
#include "base/result.h"
#include "checkpoint_dir.h"
#include "snapshot.h"
#include "state.h"

namespace det {
namespace {

constexpr char kStateDictFile[] = "state_dict.pth";
constexpr std::size_t kUuidSize = 36;

std::string new_uuid() {
  std::random_device entropy;
  Random random{std::uint64_t{entropy()} << 32 | entropy(), std::uint64_t{entropy()}};
  return random.uuid();
}

/// What the training thread asks of the writing thread.
struct Job {
  enum class Kind { kWrite, kCommit, kDrop } kind = Kind::kWrite;
  bool commit = true;  ///< kWrite: make it visible, too
  std::string storage, model_dir;
  CheckpointOwner owner;
  std::shared_ptr<const storage::Bucket> bucket;
  std::vector<std::string> code;
  std::map<std::string, std::string> texts;
  CheckpointRecord record;
};

/// What comes back: files written (`directory` is where), a checkpoint made visible, or a failure.
struct News {
  enum class Kind { kWritten, kDone, kDropped, kFailed } kind = Kind::kFailed;
  std::string directory, reason;
  CheckpointRecord record;
};

/// The writing thread's side.
class Worker {
 public:
  explicit Worker(Snapshot& snapshot) : snapshot_(snapshot) {}

  News run(Job job) {
    News news;
    Status status;
    try {
      status = attempt(std::move(job), news);
    } catch (const std::exception& error) {
      status = fail(Code::kUnavailable, error.what());
    }
    if (!status) news.kind = News::Kind::kFailed, news.reason = status.error().message;
    if (news.kind != News::Kind::kWritten) writer_.reset();  // removes what is not committed
    return news;
  }

 private:
  Status attempt(Job job, News& news) {
    news.kind = News::Kind::kDropped;
    if (job.kind == Job::Kind::kDrop) return {};
    if (job.kind == Job::Kind::kWrite) {
      TRY(write(job));
      record_ = std::move(job.record);
      news.kind = News::Kind::kWritten, news.directory = writer_->directory();
      if (!job.commit) return {};
    }
    TRY_ASSIGN(record_.resources, writer_->commit());
    if (bucket_) (void)remove_tree(std::exchange(copy_, storage_ + "/" + record_.uuid));
    news.kind = News::Kind::kDone, news.record = std::move(record_);
    return {};
  }

  Status write(const Job& job) {
    TRY_ASSIGN(CheckpointWriter writer,
               CheckpointWriter::create(job.storage, job.record.uuid, job.owner, job.bucket));
    writer_.emplace(std::move(writer));
    bucket_ = job.bucket != nullptr, storage_ = job.storage;
    TRY_ASSIGN(const std::uint64_t crc, snapshot_.write(writer_->directory() + "/" + kStateDictFile));
    writer_->note(kStateDictFile, crc);
    for (const auto& [name, text] : job.texts) TRY(writer_->write(name, text));
    return writer_->copy(job.model_dir, job.code, "code");
  }

  Snapshot& snapshot_;
  std::optional<CheckpointWriter> writer_;
  CheckpointRecord record_;
  bool bucket_ = false;
  std::string storage_, copy_;  ///< of a bucket's checkpoints the newest copy of ours stays
};

}  // namespace

class CheckpointSaver::Impl {
 public:
  explicit Impl(ContextState& context) : context_(context), snapshot_(context.device) {
    if (context.distributed->is_chief()) thread_ = std::thread([this] { work(); });
  }
  ~Impl() {
    jobs_.close();
    if (thread_.joinable()) thread_.join();
  }

  std::string save(const TrialState& state) {
    wait();
    const std::vector<std::string> generators = exchange();
    if (!thread_.joinable()) return uuid_;
    Job job;
    job.record.uuid = uuid_;
    job.record.steps_completed = state.progress.steps_completed;
    job.record.metadata = checkpoint_metadata(state);
    for (const auto& [name, callback] : context_.callbacks)
      callback->on_checkpoint_save_start(job.record.metadata);
    job.record.metadata["steps_completed"] = state.progress.steps_completed;
    job.commit = context_.callbacks.empty();
    job.storage = context_.info.checkpoint_dir;
    job.model_dir = context_.info.model_dir;
    job.bucket = context_.info.bucket;
    job.owner = {context_.info.cluster_id, context_.info.trial_id, context_.info.run};
    job.code = context_.code;
    job.texts = checkpoint_texts(context_, state, job.record.metadata);
    snapshot_.take(collect_state(context_, generators));
    ask(std::move(job));
    return uuid_;
  }

  std::vector<CheckpointRecord> finished() {
    if (news_count_.load(std::memory_order_acquire) > 0) take_news();
    std::vector<CheckpointRecord> records;
    while (!told_.empty()) {
      if (told_.front().kind == News::Kind::kFailed && !records.empty()) break;  // for the next call
      News news = std::move(told_.front());
      told_.erase(told_.begin());
      if (news.kind == News::Kind::kFailed)
        throw std::runtime_error("the checkpoint was not saved: " + news.reason);
      records.push_back(std::move(news.record));
    }
    return records;
  }

  void wait() {
    while (under_way_) take_news();
  }

 private:
  void work() {
    // Nice to training's threads, which wait for one another: of a busy core this one gets a quarter.
    constexpr int kNice = 5;
    (void)::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNice);
    Worker worker(snapshot_);
    while (std::optional<Job> job = jobs_.pop()) {
      News news = worker.run(std::move(*job));
      news_count_.fetch_add(1, std::memory_order_release);
      (void)news_.push(std::move(news));
    }
  }

  void ask(Job job) {
    under_way_ = true;
    (void)jobs_.push(std::move(job));
  }

  /// Waits for one answer.
  void take_news() {
    std::optional<News> news = news_.pop();
    news_count_.fetch_sub(1, std::memory_order_relaxed);
    under_way_ = false;
    if (news->kind == News::Kind::kWritten) {
      try {
        for (const auto& [name, callback] : context_.callbacks)
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

  /// Generators of all ranks; sets uuid_ to the chief's choice.
  std::vector<std::string> exchange() {
    std::string mine = new_uuid() + generator_bytes(context_);
    std::vector<std::string> all;
    if (context_.distributed->size() > 1) {
      all = context_.distributed->allgather_bytes(mine);
    } else {
      all.push_back(std::move(mine));
    }
    uuid_ = all.at(0).substr(0, kUuidSize);
    for (std::string& bytes : all) bytes.erase(0, kUuidSize);
    return all;
  }

  ContextState& context_;
  Snapshot snapshot_;
  std::string uuid_;
  bool under_way_ = false;  ///< the writing thread owes an answer
  std::vector<News> told_;  ///< kDone and kFailed, for finished()
  std::atomic<int> news_count_{0};
  Queue<Job> jobs_{2};
  Queue<News> news_{2};
  std::thread thread_;
};

CheckpointSaver::CheckpointSaver(ContextState& context) : impl_(std::make_unique<Impl>(context)) {}
CheckpointSaver::~CheckpointSaver() = default;
std::string CheckpointSaver::save(const TrialState& state) { return impl_->save(state); }
std::vector<CheckpointRecord> CheckpointSaver::finished() { return impl_->finished(); }
void CheckpointSaver::wait() { impl_->wait(); }

}  // namespace det
