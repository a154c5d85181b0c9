// State machine of one harness session. Runs on the edge worker, except for the callbacks of gRPC:
//
//   opened --Attach accepted by the core--> attached --error, end of stream, shutdown--> finished
#include "master/api/streams/harness_session.h"

#include <algorithm>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "common/base/event.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "det/v1/harness.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/streams/bidi_stream.h"
#include "master/api/streams/session_subject.h"

namespace det::api {
namespace {

constexpr const char* kSessionMethod = "/det.v1.HarnessService/Session";
// Above this number of unacknowledged reports the session stops reading.
constexpr std::size_t kMaxUnacknowledged = 1024;
constexpr std::size_t kMaxEndMessage = 4096;
constexpr std::chrono::seconds kEdgePatience{10};

/// Whether the training library reports this group by itself, as SystemMetrics::groups() names them.
bool is_of_machine(const std::string& group) {
  static const std::set<std::string> groups{"gpu", "cpu", "memory", "disk", "network"};
  return groups.contains(group);
}

}  // namespace

std::optional<double> metric_value(const std::string& metrics, const std::string& name) {
  auto json = parse_json(metrics, {.bytes = 1 << 20, .depth = 8});
  if (!json || !json->is_object()) return std::nullopt;
  auto it = json->find(name);
  return it == json->end() ? std::nullopt : read_double(*it);
}

/// Session of one training process. Messages wait until Attached has been sent.
class HarnessSession final : public BidiStream<v1::HarnessMessage, v1::MasterMessage>,
                             public std::enable_shared_from_this<HarnessSession> {
 public:
  HarnessSession(HarnessService& service, Credentials credentials)
      : BidiStream(service.context_.edge),
        service_(service),
        context_(service.context_),
        credentials_(std::move(credentials)) {}

  void preempt() {
    v1::MasterMessage message;
    message.mutable_preempt();
    send(std::move(message));
  }

  TrialId trial() const { return trial_; }

  /// See HarnessService::profile().
  Result<v1::ProfileStatus> profile(const v1::ProfileBatches& request) {
    if (!attached_ || finished())
      return fail(Code::kUnavailable, "the training process is connecting; try again");
    if (!takes_profiles_)
      return fail(Code::kFailedPrecondition, "the training process is of an older version, without traces");
    if (request.request_id() == profile_.request_id()) return profile_;
    if (!profile_.request_id().empty() && profile_.state() < v1::ProfileStatus::STATE_DONE)
      return fail(Code::kFailedPrecondition, "another trace of this trial is in progress; try again later");
    profile_.Clear();
    profile_.set_request_id(request.request_id());
    profile_.set_state(v1::ProfileStatus::STATE_WAITING);
    v1::MasterMessage message;
    *message.mutable_profile() = request;
    send(std::move(message));
    return profile_;
  }
  /// See HarnessService::profile_status().
  Result<v1::ProfileStatus> profile_status(const std::string& request_id) const {
    if (request_id != profile_.request_id())
      return fail(Code::kNotFound, "the training process has no such request");
    return profile_;
  }

  /// Sends collected metrics to the bulk writer as one batch. At most one batch is in flight; further metrics
  /// collect meanwhile.
  void push_rows() {
    if (rows_.empty() || rows_in_flight_ || finished()) return;
    db::MetricBatch batch{.trial = trial_, .run = run_, .rows = std::move(rows_)};
    rows_.clear();
    std::map<std::string, std::int64_t> groups;  // to the newest step
    for (const auto& row : batch.rows) {
      std::int64_t& newest = groups[row.group];
      newest = std::max(newest, row.steps_completed);
    }
    batch.done = [self = shared_from_this(), sequences = row_sequences_, groups](const Status& status) {
      self->on_edge([self, sequences, groups, status] {
        self->rows_in_flight_ = false;
        if (status) {
          self->context_.calls->metric_reports += sequences.size();
          for (const auto& [group, steps] : groups) self->publish_metrics(group, steps);
        }
        for (const std::int64_t sequence : sequences) self->report_done(sequence, status);
        self->push_rows();
      });
    };
    rows_in_flight_ = true;
    if (context_.bulk.try_push(std::move(batch))) {
      row_sequences_.clear();
    } else {
      // The writer is full and left the batch unchanged: tick() retries. Backpressure reaches the client
      // through kMaxUnacknowledged.
      rows_ = std::move(batch.rows);  // NOLINT(bugprone-use-after-move)
      rows_in_flight_ = false;
    }
  }

 private:
  /// A report that has not been acknowledged.
  struct Pending {
    std::int64_t sequence;
    bool durable = false;
  };

  /// Removes the session unless a newer one has taken its place.
  void released() override {
    auto it = service_.sessions_.find(allocation_);
    if (it != service_.sessions_.end() && it->second.lock().get() == this) service_.sessions_.erase(it);
  }

  void ended(const grpc::Status&) override {
    if (stream_) context_.streams->close(*stream_);
  }

  Status authenticate() override {
    auto caller = api::authenticate(kSessionMethod, credentials_, *context_.sessions);
    if (caller) return {};
    // The token of an ended allocation is forgotten with it, and its process must be told to leave.
    const bool unknown =
        caller.error().code == Code::kUnauthenticated && !credentials_.allocation_token.empty();
    if (unknown) return fail(Code::kAborted, "this run is not the trial's current one; leave");
    return tl::unexpected(caller.error());
  }

  void received(const v1::HarnessMessage& message) override {
    // Attach must come first and only once.
    if (message.has_attach() && !attach_seen_) {
      attach_seen_ = true;
      return attach(message.attach());
    }
    if (attached_ && message.has_alive()) {
      renew_lease();
      return read_more();
    }
    if (attached_ && message.has_profile()) {
      take_profile(message.profile());
      return read_more();
    }
    if (!attached_ || (!message.has_report() && !message.has_reports())) {
      return refuse({Code::kInvalidArgument, "a session begins with one attach; reports follow", {}});
    }
    if (message.has_report()) take(message.report());
    // A refused report ends the session; the rest of the message is then dropped.
    for (const v1::Report& report : message.reports().reports())
      if (!finished()) take(report);
    push_rows();
    if (!finished()) read_more();
  }

  /// Reads on while few reports are unacknowledged. A client that outruns the database is throttled by flow
  /// control.
  void read_more() {
    reading_ = pending_.size() < kMaxUnacknowledged;
    if (reading_) read_next();
  }

  void attach(const v1::Attach& attach) {
    trial_ = TrialId(attach.trial_id());
    run_ = attach.run();
    takes_profiles_ = attach.profiles();
    allocation_ = AllocationId(attach.allocation_id());
    // The lookup blocks on the core and runs on a worker. Without an allocation token the caller must own a
    // trial outside the cluster.
    const bool taken = context_.pools.steer.try_post([self = shared_from_this()] {
      auto found = self->credentials_.allocation_token.empty()
                       ? find_detached(self->context_, self->credentials_, self->trial_, self->run_)
                       : find_allocation(self->context_, self->credentials_, self->allocation_, self->trial_,
                                         self->run_);
      self->on_edge(
          [self, found = std::move(found)] { found ? self->admit(*found) : self->refuse(found.error()); });
    });
    if (!taken) refuse(busy());
  }

  void admit(const SessionSubject& found) {
    allocation_ = found.allocation;
    experiment_ = found.experiment;
    owner_ = found.owner;
    fresh_ = context_.quotas->is_fresh(found.started);
    task_ = found.task;
    metric_ = found.metric;
    time_ = found.time;
    // A session admitted after close() would never be ended.
    if (service_.closed_) return refuse(shutting_down());
    // A process that reconnects replaces its old session, which may not have noticed the broken connection.
    auto& place = service_.sessions_[allocation_];
    if (auto older = place.lock())
      older->finish(to_grpc(Error{Code::kAborted, "a newer session took over", {}}));
    place = weak_from_this();
    // Tokens of allocations are fenced by the core; the one of a user may be revoked at any time.
    if (credentials_.allocation_token.empty()) watch_token();
    context_.loop.call(core::HarnessAttached{.trial = trial_, .run = run_},
                       [self = shared_from_this()](loop::Answer answer) {
                         self->on_edge([self, answer = std::move(answer)] { self->attached(answer); });
                       });
  }

  /// Ends the session with the token of its user.
  void watch_token() {
    if (finished()) return;
    stream_ = context_.streams->open(kSessionMethod, credentials_, nullptr,
                                     [weak = weak_from_this(), &edge = context_.edge](const Error& error) {
                                       edge.post([weak, error] {
                                         if (const auto self = weak.lock()) self->refuse(error);
                                       });
                                     });
  }

  void attached(const loop::Answer& answer) {
    if (finished()) return;
    if (!answer) return refuse(answer.error());
    attached_ = true;
    v1::MasterMessage message;
    // Trials outside the cluster have no agent. Their processes renew the lease, ten times per limit.
    if (credentials_.allocation_token.empty()) {
      const auto often =
          std::chrono::duration_cast<std::chrono::milliseconds>(context_.settings.detached_limit / 10);
      message.mutable_attached()->set_alive_milliseconds(std::max<std::int64_t>(often.count(), 1));
    }
    message.mutable_attached()->set_preempt(std::get<core::Attached>(*answer).preempt);
    open(std::move(message));
    read_more();
  }

  void renew_lease() {
    context_.loop.call(core::HarnessAlive{.trial = trial_, .run = run_},
                       [self = shared_from_this()](loop::Answer answer) {
                         if (answer) return;
                         self->on_edge([self, error = answer.error()] { self->refuse(error); });
                       });
  }

  /// After a reconnect the process sends the status of a request that this session has not seen.
  void take_profile(const v1::ProfileStatus& status) {
    if (!profile_.request_id().empty() && status.request_id() != profile_.request_id()) return;
    if (status.request_id().size() > kMaxProfileId) return;
    profile_ = status;
    profile_.set_message(make_utf8(status.message().substr(0, kMaxEndMessage)));
  }

  void take(const v1::Report& report) {
    // Sequence numbers order the acknowledgments; gaps are accepted.
    if (report.sequence() <= last_sequence_) {
      return refuse({Code::kInvalidArgument, "report numbers must grow", {}});
    }
    last_sequence_ = report.sequence();
    pending_.push_back({report.sequence()});
    const WallTime time = report.has_time() ? from_proto(report.time()) : wall_now();
    switch (report.report_case()) {
      case v1::Report::kMetrics:
        return take_metrics(report.sequence(), report.metrics(), time);
      case v1::Report::kCheckpoint:
        return take_checkpoint(report.sequence(), report.checkpoint(), time);
      case v1::Report::kProgress:
        return take_progress(report.sequence(), report.progress());
      case v1::Report::kInvalidHp:
        return to_core(report.sequence(), core::ReportInvalidHp{.trial = trial_, .run = run_});
      case v1::Report::kPreemptionAcknowledged:
        return to_core(report.sequence(), core::AcknowledgePreemption{.trial = trial_, .run = run_});
      case v1::Report::kEnd:
        return take_end(report.sequence(), report.end());
      case v1::Report::REPORT_NOT_SET:
        return refuse({Code::kInvalidArgument, "an empty report", {}});
    }
  }

  void take_end(std::int64_t sequence, const v1::EndReport& report) {
    const auto state = from_proto(report.state());
    if (!state || !core::is_terminal(*state) || report.message().size() > kMaxEndMessage) {
      return refuse(
          {Code::kInvalidArgument, "end: a terminal state, and a message of at most 4096 bytes", {}});
    }
    to_core(
        sequence,
        core::EndTrial{.trial = trial_, .run = run_, .end = *state, .message = make_utf8(report.message())});
  }

  void take_metrics(std::int64_t sequence, const v1::MetricsReport& report, WallTime time) {
    const auto keys = check_metrics(report);
    if (!keys) return refuse(keys.error());
    const Status room = context_.quotas->check(core::QuotaResource::kMetricSeries, owner_);
    if (auto counted = context_.metric_names->add(trial_, *keys, room, fresh_); !counted) {
      // Measurements of the machine come without a request, so they do not hold up the reports behind them.
      return is_of_machine(report.group()) ? report_done(sequence, {}) : refuse(counted.error());
    }
    // The searcher depends on validations; other metrics bypass the core.
    if (report.group() == "validation") {
      return to_core(sequence,
                     core::ReportValidation{.trial = trial_,
                                            .run = run_,
                                            .steps_completed = report.steps_completed(),
                                            .metrics = report.metrics(),
                                            .searcher_metric = metric_value(report.metrics(), metric_),
                                            .searcher_time = metric_value(report.metrics(), time_),
                                            .reported = time});
    }
    rows_.push_back({report.group(), report.steps_completed(), report.metrics(), time});
    row_sequences_.push_back(sequence);
  }

  void take_progress(std::int64_t sequence, const v1::ProgressReport& report) {
    if (!(report.progress() >= 0 && report.progress() <= 1) || report.steps_completed() < 0) {
      return refuse(
          {Code::kInvalidArgument, "progress must be within 0 and 1, steps_completed not negative", {}});
    }
    to_core(sequence, core::ReportProgress{.trial = trial_,
                                           .run = run_,
                                           .progress = report.progress(),
                                           .steps_completed = report.steps_completed()});
  }

  void take_checkpoint(std::int64_t sequence, const v1::CheckpointReport& report, WallTime time) {
    auto input = read_checkpoint_report(report, trial_, run_, time, context_.settings.cluster_id);
    if (!input) return refuse(input.error());
    if (auto room = context_.quotas->check(core::QuotaResource::kCheckpointBytes, owner_); !room)
      return refuse(room.error());
    checkpoints_.emplace_back(sequence, std::move(*input));
    pass_on_checkpoint();
  }

  /// Submits a checkpoint once all earlier reports are durable. A later run that resumes from it must find
  /// their rows.
  void pass_on_checkpoint() {
    if (checkpoints_.empty() || pending_.empty() || pending_.front().sequence != checkpoints_.front().first)
      return;
    auto [sequence, input] = std::move(checkpoints_.front());
    checkpoints_.pop_front();
    to_core(sequence, std::move(input));
  }

  void to_core(std::int64_t sequence, core::Input input) {
    context_.loop.call(std::move(input), [self = shared_from_this(), sequence](loop::Answer answer) {
      Status status;
      if (!answer) status = tl::unexpected(answer.error());
      self->on_edge([self, sequence, status] { self->report_done(sequence, status); });
    });
  }

  void report_done(std::int64_t sequence, const Status& status) {
    if (finished()) return;
    if (!status) return refuse(status.error());
    // Reports complete out of order, but are acknowledged in order.
    auto it =
        std::lower_bound(pending_.begin(), pending_.end(), sequence,
                         [](const Pending& report, std::int64_t wanted) { return report.sequence < wanted; });
    if (it != pending_.end() && it->sequence == sequence) it->durable = true;
    std::int64_t acknowledged = 0;
    while (!pending_.empty() && pending_.front().durable) {
      acknowledged = pending_.front().sequence;
      pending_.pop_front();
    }
    if (acknowledged == 0) return;
    acknowledge(acknowledged);
    pass_on_checkpoint();
    if (attached_ && !reading_) read_more();
  }

  void acknowledge(std::int64_t sequence) {
    // Acknowledgments are cumulative: a queued one is replaced.
    if (v1::MasterMessage* last = last_unsent(); last && last->has_acknowledged())
      return last->mutable_acknowledged()->set_sequence(sequence);
    v1::MasterMessage message;
    message.mutable_acknowledged()->set_sequence(sequence);
    send(std::move(message));
  }

  void publish_metrics(const std::string& group, std::int64_t steps) {
    context_.hub.publish({.kind = loop::Change::Kind::kMetrics,
                          .experiment = experiment_,
                          .trial = trial_,
                          .task = task_,
                          .name = group,
                          .steps_completed = steps});
  }

  void refuse(const Error& error) {
    log::debug("harness session ended", {{"allocation", allocation_}, {"reason", error.message}});
    finish(to_grpc(error));
  }

  HarnessService& service_;
  const Context& context_;
  const Credentials credentials_;
  bool reading_ = true, attach_seen_ = false, attached_ = false, takes_profiles_ = false;

  TrialId trial_;
  RunNumber run_ = 0;
  AllocationId allocation_;
  ExperimentId experiment_;
  db::TaskOwner owner_;  ///< of the experiment
  bool fresh_ = false;   ///< the trial began when this master already ran
  TaskId task_;
  std::string metric_, time_;  ///< metrics of the searcher: objective and time
  std::int64_t last_sequence_ = 0;
  std::deque<Pending> pending_;
  /// Checkpoints that wait for earlier reports to become durable.
  std::deque<std::pair<std::int64_t, core::ReportCheckpoint>> checkpoints_;
  // Metrics that wait for the bulk writer, and their sequence numbers.
  std::vector<db::MetricRow> rows_;
  std::vector<std::int64_t> row_sequences_;
  bool rows_in_flight_ = false;
  std::optional<Streams::Id> stream_;  ///< set while the token of a user is watched
  v1::ProfileStatus profile_;          ///< of the newest request; its id is empty before the first
};

HarnessService::HarnessService(const Context& context) : Service(context, v1::HarnessService::full_name) {
  bidi_stream(v1::HarnessService::Session, &HarnessService::Session);
  unary(v1::HarnessService::FallBack, &HarnessService::FallBack);
}

grpc::ServerBidiReactor<v1::HarnessMessage, v1::MasterMessage>* HarnessService::Session(
    grpc::CallbackServerContext* call) {
  auto session = std::make_shared<HarnessSession>(*this, read_credentials(*call));
  session->start(session, context_.pools.steer);
  return session.get();
}

void HarnessService::preempt(const AllocationId& id) {
  context_.edge.post([this, id] {
    auto it = sessions_.find(id);
    if (it == sessions_.end()) return;
    if (auto session = it->second.lock()) session->preempt();
  });
}

Result<v1::ProfileStatus> HarnessService::ask_session(TrialId trial, Code without, AskSession ask) {
  struct Reply {
    Event ready;
    Result<v1::ProfileStatus> status;
  };
  auto reply = std::make_shared<Reply>();
  reply->status = fail(without,
                       "no training process of the library is connected: the trial waits or starts, or its "
                       "program is another one (Python)");
  context_.edge.post([this, trial, reply, ask = std::move(ask)] {
    for (auto& [id, weak] : sessions_) {
      const auto session = weak.lock();
      if (session && session->trial() == trial) reply->status = ask(*session);
    }
    reply->ready.set();
  });
  if (!reply->ready.wait_for(kEdgePatience)) return tl::unexpected(busy());
  return reply->status;
}

Result<v1::ProfileStatus> HarnessService::profile(TrialId trial, const v1::ProfileBatches& request) {
  return ask_session(trial, Code::kFailedPrecondition,
                     [request](HarnessSession& session) { return session.profile(request); });
}

Result<v1::ProfileStatus> HarnessService::profile_status(TrialId trial, const std::string& request_id) {
  return ask_session(trial, Code::kNotFound,
                     [request_id](HarnessSession& session) { return session.profile_status(request_id); });
}

void HarnessService::tick() {
  for (auto& [id, weak] : sessions_) {
    if (auto session = weak.lock()) session->push_rows();
  }
}

void HarnessService::close() {
  closed_ = true;
  for (auto& [id, weak] : sessions_) {
    if (auto session = weak.lock()) session->finish(to_grpc(shutting_down()));
  }
}

}  // namespace det::api
