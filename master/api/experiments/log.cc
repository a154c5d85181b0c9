// State machine of one log stream. Reads run on a worker, writes on threads of gRPC, everything else on the
// edge worker:
//
//   reading -> writing -> reading ... -> no more lines -> done, or waiting --change--> reading
#include "master/api/experiments/log.h"

#include <algorithm>

#include "det/v1/log.methods.h"
#include "det/v1/task.pb.h"
#include "master/api/convert/convert.h"
#include "master/db/queries/commands.h"
#include "master/db/queries/trials.h"

namespace det::api {
namespace {

// Lines of one query.
constexpr std::int64_t kTrialLogPage = 1000;
// Lines of a tail.
constexpr std::int64_t kMaxLogTail = 10'000;

/// Parameters of one log stream.
struct LogReading {
  std::shared_ptr<const google::protobuf::Message> request;
  db::LogFilter filter;
  std::int64_t limit = 0;  ///< maximum number of lines; 0: all
  bool follow = false;
  std::string owner;  ///< key of the caller in a Budget
};

/// One log stream. Keeps itself alive until gRPC calls OnDone.
class Reader : public grpc::ServerWriteReactor<v1::LogEntry>, public std::enable_shared_from_this<Reader> {
 public:
  /// Authorizes the caller and reads the request. Blocks.
  using Admit = std::function<Result<LogReading>(const Credentials&)>;
  Reader(const Context& context, grpc::CallbackServerContext* call, const char* method, Admit admit)
      : context_(context),
        call_(call),
        method_(method),
        credentials_(read_credentials(*call)),
        admit_(std::move(admit)) {}

  void start() {
    self_ = shared_from_this();
    on_worker([self = self_] { self->open(); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok || ++next_row_ >= rows_.size()) return on_edge([self = self_, ok] { self->page_written(ok); });
    write_row();
  }
  void OnCancel() override {
    on_edge([self = self_] {
      self->canceled_ = true;
      if (self->state_ == State::kWaiting) self->finish(grpc::Status::CANCELLED);
    });
  }
  void OnDone() override {
    on_edge([self = std::move(self_)] {
      if (self->watched_ != 0) self->context_.streams->close(self->watched_);
      if (self->subscription_ != 0) self->context_.hub.unsubscribe(self->subscription_);
    });
  }

 private:
  enum class State { kReading, kWriting, kWaiting, kFinished };

  void on_edge(loop::Workers::Job job) { context_.edge.post(std::move(job)); }
  void on_worker(loop::Workers::Job job) {
    if (!context_.pools.read.try_post(std::move(job))) {
      finish(to_grpc(busy()));
    }
  }

  // ---- worker

  void open() {
    auto reading = admit_(credentials_);
    if (!reading) return finish_later(reading.error());
    filter_ = std::move(reading->filter);
    left_ = reading->limit;
    follow_ = reading->follow;
    owner_ = std::move(reading->owner);
    if (filter_.descending) left_ = left_ > 0 ? std::min(left_, kMaxLogTail) : kMaxLogTail;
    const auto facts = db::get_task(context_.pool, filter_.task);
    if (!facts) return finish_later(facts.error());
    // Log lines of commands carry no trial id.
    trial_ = facts->key.as<TrialId>().value_or(TrialId());
    // Opens the response of the gateway, although the first line may take long.
    call_->AddInitialMetadata("x-det-open", "1");
    StartSendInitialMetadata();
    // Every stream is registered, not only those that follow: long reads end as well when the caller's rights
    // do.
    watched_ = context_.streams->open(method_, credentials_, std::move(reading->request),
                                      [weak = weak_from_this()](const Error& error) {
                                        if (auto self = weak.lock())
                                          self->on_edge([self, error] { self->cut(error); });
                                      });
    if (follow_) {
      // Subscribed before the first read, so that no change is missed. The listener keeps the reader alive
      // until it is unsubscribed.
      subscription_ = context_.hub.subscribe(
          [self = shared_from_this()](const std::shared_ptr<const loop::Event>& event) {
            if (event && self->concerns(event->change)) self->on_edge([self] { self->on_change(); });
          });
    }
    read();
  }

  void read() {
    // The end is read before the lines: if the task had ended, the lines are complete.
    bool ended = false;
    if (follow_) {
      auto task = db::get_task(context_.pool, filter_.task);
      if (!task) return finish_later(task.error());
      ended = task->ended;
    }
    if (!follow_ && !filter_.descending && !last_) {
      db::LogFilter tail = filter_;
      tail.descending = true;
      tail.limit = 1;
      const auto newest = db::read_logs(context_.pool, tail);
      if (!newest) return finish_later(newest.error());
      last_ = newest->empty() ? 0 : newest->front().id;
    }
    if (follow_ && filter_.descending) {
      // A followed log runs forward, from the first line of its tail.
      filter_.limit = left_;
      const auto first = db::tail_start(context_.pool, filter_);
      if (!first) return finish_later(first.error());
      filter_.after_id = std::max(filter_.after_id, *first - 1);
      filter_.descending = false;
      left_ = 0;
    }
    filter_.limit = left_ > 0 ? std::min(left_, kTrialLogPage) : kTrialLogPage;
    auto rows = db::read_logs(context_.pool, filter_);
    if (!rows) return finish_later(rows.error());
    on_edge([self = shared_from_this(), rows = std::move(*rows), ended]() mutable {
      self->page_read(std::move(rows), ended);
    });
  }

  void finish_later(const Error& error) {
    on_edge([self = shared_from_this(), status = to_grpc(error)] { self->finish(status); });
  }

  // ---- edge worker

  bool concerns(const loop::Change& change) const {
    return change.task == filter_.task &&
           (change.kind == loop::Change::Kind::kLogs || change.kind == loop::Change::Kind::kTrial ||
            change.kind == loop::Change::Kind::kCommand);
  }

  void on_change() {
    news_ = true;
    if (state_ == State::kWaiting) read_again();
  }

  void read_again() {
    state_ = State::kReading;
    news_ = false;
    on_worker([self = shared_from_this()] { self->read(); });
  }

  /// Ends the stream after the write in flight, because the caller may no longer read.
  void cut(const Error& error) {
    cut_ = to_grpc(error);
    if (state_ == State::kWaiting) finish(*cut_);
  }

  void page_read(std::vector<db::LogRow> rows, bool ended) {
    if (canceled_) return finish(grpc::Status::CANCELLED);
    if (cut_) return finish(*cut_);
    if (rows.empty()) {
      if (!follow_ || ended) return finish(grpc::Status::OK);
      // A change that arrived during the read is handled now.
      state_ = State::kWaiting;
      if (news_) read_again();
      return;
    }
    std::int64_t bytes = 0;
    for (const db::LogRow& row : rows) bytes += static_cast<std::int64_t>(row.text.size());
    memory_ = context_.log_pages->take(owner_, bytes);
    if (!memory_)
      return finish(to_grpc(
          Error{Code::kResourceExhausted,
                "log lines that wait for readers of this user hold 64 MiB; read or close these streams",
                {}}));
    rows_ = std::move(rows);
    next_row_ = 0;
    state_ = State::kWriting;
    write_row();
  }

  void page_written(bool ok) {
    if (!ok || canceled_) return finish(grpc::Status::CANCELLED);
    if (cut_) return finish(*cut_);
    // The next page starts behind the last line of this one.
    const std::int64_t last = rows_.back().id;
    const auto lines = static_cast<std::int64_t>(rows_.size());
    (filter_.descending ? filter_.before_id : filter_.after_id) = last;
    std::vector<db::LogRow>().swap(rows_);
    memory_.reset();
    if (left_ > 0) {
      left_ -= lines;
      if (left_ <= 0 && !follow_) return finish(grpc::Status::OK);
      if (left_ <= 0) left_ = 0;
    }
    if (last_ && last >= *last_) return finish(grpc::Status::OK);
    read_again();
  }

  void finish(const grpc::Status& status) {
    if (state_ == State::kFinished) return;
    state_ = State::kFinished;
    Finish(status);
  }

  // ---- while writing: threads of gRPC, one write at a time

  void write_row() {
    entry_.Clear();
    api::to_proto(rows_[next_row_], trial_, &entry_);
    StartWrite(&entry_);
  }

  const Context& context_;
  grpc::CallbackServerContext* const call_;
  const char* const method_;
  const Credentials credentials_;
  const Admit admit_;
  // Set by open().
  TrialId trial_;  ///< 0 for the log of a command
  db::LogFilter filter_;
  std::int64_t left_ = 0;  ///< remaining lines; 0: no limit
  bool follow_ = false;
  std::string owner_;
  // Highest id when the first read began. A log that grows faster than it is read ends there, unless
  // followed.
  std::optional<std::int64_t> last_;
  State state_ = State::kReading;
  // A change was announced since the last read began.
  bool news_ = false, canceled_ = false;
  // Set when the caller has lost its rights.
  std::optional<grpc::Status> cut_;
  Streams::Id watched_ = 0;
  std::vector<db::LogRow> rows_;
  std::optional<loop::Budget::Lease> memory_;  ///< of rows_
  std::size_t next_row_ = 0;
  v1::LogEntry entry_;
  loop::Hub::Subscription subscription_ = 0;
  std::shared_ptr<Reader> self_;
};

/// Filter of a request, without its task.
template <typename Request>
db::LogFilter log_filter(const Request& request) {
  db::LogFilter filter;
  filter.descending = request.order_by() == v1::ORDER_BY_DESC;
  filter.allocations.assign(request.allocation_ids().begin(), request.allocation_ids().end());
  filter.agents.assign(request.agent_ids().begin(), request.agent_ids().end());
  filter.ranks.assign(request.rank_ids().begin(), request.rank_ids().end());
  for (const int level : request.levels()) {
    const std::string name = log_level_name(static_cast<v1::LogLevel>(level));
    if (!name.empty()) filter.levels.push_back(name);
  }
  filter.stdtypes.assign(request.stdtypes().begin(), request.stdtypes().end());
  filter.sources.assign(request.sources().begin(), request.sources().end());
  if (request.has_timestamp_before()) filter.before = from_proto(request.timestamp_before());
  if (request.has_timestamp_after()) filter.after = from_proto(request.timestamp_after());
  filter.search = request.search_text();
  filter.regex = request.enable_regex();
  filter.after_id = request.after_id();
  return filter;
}

}  // namespace

template <typename Request>
grpc::ServerWriteReactor<v1::LogEntry>* read_log(const Context& context, grpc::CallbackServerContext* call,
                                                 const char* method, const Unread<Request>& unread,
                                                 Result<TaskId> (*task)(const Request&, db::Pool&)) {
  const auto admit_reading = [&context, method, bytes = unread.bytes,
                              task](const Credentials& credentials) -> Result<LogReading> {
    TRY_ASSIGN(const auto admitted, read_authorized<Request>(context, method, credentials, bytes));
    const Request& request = *admitted.request;
    LogReading reading{admitted.request, log_filter(request), request.limit(), request.follow(),
                       budget_owner(admitted.caller)};
    TRY_ASSIGN(reading.filter.task, task(request, context.pool));
    return reading;
  };
  auto reader = std::make_shared<Reader>(context, call, method, admit_reading);
  reader->start();
  return reader.get();
}

template grpc::ServerWriteReactor<v1::LogEntry>* read_log(
    const Context& context, grpc::CallbackServerContext* call, const char* method,
    const Unread<v1::TrialLogsRequest>& unread,
    Result<TaskId> (*task)(const v1::TrialLogsRequest&, db::Pool&));
template grpc::ServerWriteReactor<v1::LogEntry>* read_log(
    const Context& context, grpc::CallbackServerContext* call, const char* method,
    const Unread<v1::TaskLogsRequest>& unread, Result<TaskId> (*task)(const v1::TaskLogsRequest&, db::Pool&));

LogService::LogService(const Context& context) : Service(context, v1::LogService::full_name) {
  server_stream(v1::LogService::TrialLogs, &LogService::TrialLogs);
  unary(v1::LogService::PutTrialRetainLogs, &LogService::PutTrialRetainLogs);
  unary(v1::LogService::PutExperimentRetainLogs, &LogService::PutExperimentRetainLogs);
  unary(v1::LogService::PutExperimentsRetainLogs, &LogService::PutExperimentsRetainLogs, context_.pools.bulk);
  unary(v1::LogService::GetTrialRemainingLogRetentionDays, &LogService::GetTrialRemainingLogRetentionDays);
  unary(v1::LogService::CleanupLogs, &LogService::CleanupLogs, context_.pools.bulk);
}

grpc::ServerWriteReactor<v1::LogEntry>* LogService::TrialLogs(grpc::CallbackServerContext* call,
                                                              const Unread<v1::TrialLogsRequest>& request) {
  const auto task = +[](const v1::TrialLogsRequest& read, db::Pool& pool) -> Result<TaskId> {
    TRY_ASSIGN(const auto row, db::get_trial(pool, TrialId(read.trial_id())));
    return row.trial.task;
  };
  return read_log(context_, call, "/det.v1.LogService/TrialLogs", request, task);
}

}  // namespace det::api
