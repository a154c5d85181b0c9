// Client of a trial on a cluster: one bidirectional stream to the master, reconnected until the process
// exits. This file and its dependencies are libdet_cluster.so, which is loaded separately and must not link
// LibTorch.
//
//   training thread ── queue ──> reporter thread: spool (unacknowledged, in order) ──> stream
//                                reporter thread <── acknowledgments, preemption ──── stream
//
// States of a stream:
//
//   start → attach → attached → (reports out, acknowledgments in)* → any failure → finish → wait → start
#include <google/protobuf/util/time_util.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include "common/base/clock.h"
#include "common/base/event.h"
#include "common/base/json.h"
#include "common/base/queue.h"
#include "common/base/random.h"
#include "common/base/text.h"
#include "common/client/calls.h"
#include "det/v1/harness.methods.h"
#include "det/v1/media.methods.h"
#include "harness/src/base/heartbeat.h"
#include "harness/src/client/client.h"
#include "harness/src/client/cluster_channel.h"
#include "harness/src/client/media_sender.h"
#include "harness/src/client/profile_mailbox.h"

namespace det {
namespace {

/// Limits of unacknowledged reports: add() blocks above kSpoolBytes.
constexpr std::int64_t kSpoolBytes = 64 << 20;
constexpr std::size_t kSpoolReports = 1 << 20;
/// Several threads may wait for acknowledgments, but each wake-up reaches only one; none waits longer than
/// this.
constexpr Duration kNudge = std::chrono::seconds(1);
/// Limit for media that are sent before a checkpoint is reported.
constexpr std::chrono::seconds kMediaPatience{30};

/// Limits of one message.
constexpr int kMaxTogether = 256;
constexpr std::int64_t kMaxBytesTogether = 256 << 10;

struct Entry {
  v1::HarnessMessage message;
  std::int64_t sequence = 0;  // assigned by the reporter thread in queue order
  std::int64_t bytes = 0;
};

/// Type of a completion, used as gRPC's tag.
enum Completion : std::intptr_t { kStarted = 1, kRead, kWrote, kFinished, kWake, kRetry, kAlive };
void* tag(Completion event) { return reinterpret_cast<void*>(event); }

/// The reporter thread with the spool and the stream. Methods run on that thread unless marked thread-safe.
class Reporter {
 public:
  explicit Reporter(const ClusterAddress& address)
      : address_(address), channel_(make_channel(address)), random_{std::random_device{}(), 0} {
    connect();
    thread_ = std::thread([this] { run(); });
  }
  /// Drops unacknowledged reports; call flush() first. No other thread may report any more.
  ~Reporter() {
    stopping_ = true;
    wake();
    thread_.join();
  }

  /// Thread-safe. Blocks while the spool is full.
  void add(v1::Report report) {
    Entry entry;
    *report.mutable_time() = google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(wall_now().micros);
    *entry.message.mutable_report() = std::move(report);
    entry.bytes = static_cast<std::int64_t>(entry.message.ByteSizeLong());
    while (spooled_ > kSpoolBytes) (void)acknowledged_some_.take_for(kNudge);
    spooled_ += entry.bytes;
    // Counted before the push, so that a flush() after the push waits for a number that includes this report.
    ++added_;
    (void)queue_.push(std::move(entry));
    wake();
  }
  /// Thread-safe.
  bool flush(std::chrono::seconds timeout) {
    const MonoTime deadline = mono_now() + timeout;
    const std::int64_t last = added_;
    while (acknowledged_ < last) {
      const Duration left = deadline - mono_now();
      if (left.count() <= 0) return false;
      (void)acknowledged_some_.take_for(std::min(left, kNudge));
    }
    return true;
  }
  /// Thread-safe. After a change of the progress, call profile_changed().
  ProfileMailbox& profile() { return profile_; }
  /// Thread-safe.
  void profile_changed() { wake(); }
  /// Thread-safe.
  bool preempted() const { return preempted_.load(std::memory_order_relaxed); }
  /// Thread-safe.
  bool backlogged() const { return spooled_ > kSpoolBytes / 2; }

 private:
  bool detached() const { return !address_.user_token.empty(); }
  /// Schedules the next keep-alive of a detached trial.
  void set_alive_alarm() {
    alive_alarm_.Set(
        &events_, gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(alive_ms_, GPR_TIMESPAN)),
        tag(kAlive));
  }

  /// Thread-safe. Only the thread that changes awake_ to true sets the alarm, so it is never set twice at
  /// once.
  void wake() {
    if (!awake_.exchange(true)) wake_alarm_.Set(&events_, gpr_inf_past(GPR_CLOCK_REALTIME), tag(kWake));
  }

  void run() {
    void* event = nullptr;
    bool ok = false;
    while (events_.Next(&event, &ok))
      handle(static_cast<Completion>(reinterpret_cast<std::intptr_t>(event)), ok);
  }

  void handle(Completion event, bool ok) {
    switch (event) {
      case kStarted:
        --outstanding_;
        ok && !failed_ ? attach() : fail_attempt();
        break;
      case kRead:
        --outstanding_;
        // Reading continues after a failure: gRPC delivers the status only when all messages have been read.
        ok ? receive() : fail_attempt();
        break;
      case kWrote:
        --outstanding_;
        writing_ = false;
        ok && !failed_ ? send_next() : fail_attempt();
        break;
      case kFinished:
        finished();
        break;
      case kWake:
        awake_ = false;
        if (stopping_) {
          stop();
        } else {
          send_next();
        }
        break;
      case kRetry:
        waiting_ = false;
        // Waiting for a dead master is not a hang. The agent ends the process when its lease expires.
        beat();
        stopping_ ? events_.Shutdown() : connect();
        break;
      case kAlive:
        if (stopping_ || ended_ || alive_ms_ == 0) break;
        alive_due_ = true;
        send_next();
        set_alive_alarm();
        break;
    }
  }

  void connect() {
    context_ = std::make_unique<grpc::ClientContext>();
    add_credentials(*context_, address_);
    // A new stream resends everything unacknowledged; the master ignores reports it already has.
    attached_ = writing_ = failed_ = false;
    next_ = 0;
    outstanding_ = 1;
    stream_ = wire::start(channel_, v1::HarnessService::Session, *context_, events_, tag(kStarted));
  }

  void attach() {
    profile_.resend();
    v1::HarnessMessage message;
    message.mutable_attach()->set_profiles(true);
    message.mutable_attach()->set_trial_id(address_.trial_id);
    message.mutable_attach()->set_run(address_.run);
    message.mutable_attach()->set_allocation_id(address_.allocation_id);
    write(message);
    read();
  }
  void write(const v1::HarnessMessage& message) {
    writing_ = true;
    ++outstanding_;
    stream_->Write(message, tag(kWrote));
  }
  void read() {
    ++outstanding_;
    stream_->Read(&incoming_, tag(kRead));
  }

  void receive() {
    if (incoming_.has_attached()) {
      attached_ = true;
      wait_ms_ = kFirstConnectMs;
      // The outage is over: reset the back-off and log it once.
      if (told_outage_) std::fprintf(stderr, "the master is back; reports go on\n");
      told_outage_ = false;
      if (incoming_.attached().preempt()) preempt();
      const bool first = alive_ms_ == 0;
      alive_ms_ = incoming_.attached().alive_milliseconds();
      if (first && alive_ms_ > 0) set_alive_alarm();
      acknowledge(incoming_.attached().acknowledged_sequence());
    } else if (incoming_.has_acknowledged()) {
      acknowledge(incoming_.acknowledged().sequence());
    } else if (incoming_.has_preempt()) {
      preempt();
    } else if (incoming_.has_profile()) {
      const v1::ProfileBatches& request = incoming_.profile();
      profile_.receive({.id = request.request_id(),
                        .batches = request.batches(),
                        .record_shapes = request.record_shapes(),
                        .profile_memory = request.profile_memory(),
                        .with_stack = request.with_stack()});
    }
    read();
    send_next();
  }

  void preempt() {
    preempted_ = true;
    if (address_.preempted != nullptr) address_.preempted();
  }

  void acknowledge(std::int64_t sequence) {
    while (!spool_.empty() && spool_.front().sequence <= sequence) {
      spooled_ -= spool_.front().bytes;
      acknowledged_ = spool_.front().sequence;
      spool_.pop_front();
      // next_ is an index into spool_, which has just lost its first element.
      if (next_ > 0) --next_;
    }
    acknowledged_some_.set();
  }

  void send_next() {
    for (Entry& entry : queue_.pop_batch(kSpoolReports, std::chrono::seconds(0))) {
      entry.sequence = ++last_sequence_;
      entry.message.mutable_report()->set_sequence(entry.sequence);
      spool_.push_back(std::move(entry));
    }
    // The master accepts nothing more of an ended trial; acknowledging here releases callers of flush().
    if (ended_) return acknowledge(last_sequence_);
    if (!attached_ || writing_ || failed_) return;
    if (std::exchange(alive_due_, false)) {
      v1::HarnessMessage message;
      message.mutable_alive();
      return write(message);
    }
    if (const auto progress = profile_.take_outgoing()) return write(profile_status(*progress));
    if (next_ + 1 == spool_.size()) return write(spool_[next_++].message);
    if (next_ < spool_.size()) write(several());
  }

  static v1::HarnessMessage profile_status(const ProfileProgress& progress) {
    v1::HarnessMessage message;
    v1::ProfileStatus& status = *message.mutable_profile();
    status.set_request_id(progress.id);
    status.set_state(static_cast<v1::ProfileStatus::State>(static_cast<int>(progress.state) + 1));
    status.set_batches(static_cast<std::int32_t>(progress.batches));
    status.set_message(make_utf8(progress.message.substr(0, kMaxMessage)));
    return message;
  }

  /// Packs the next reports into one message.
  v1::HarnessMessage several() {
    v1::HarnessMessage message;
    std::int64_t bytes = 0;
    for (int count = 0; next_ < spool_.size() && count < kMaxTogether && bytes < kMaxBytesTogether; ++count) {
      const Entry& entry = spool_[next_++];
      *message.mutable_reports()->add_reports() = entry.message.report();
      bytes += entry.bytes;
    }
    return message;
  }

  /// Called when the stream is broken: waits for outstanding operations, then requests the status.
  void fail_attempt() {
    failed_ = true;
    if (outstanding_ == 0) stream_->Finish(&status_, tag(kFinished));
  }

  void finished() {
    if (status_.error_code() == grpc::StatusCode::ABORTED && detached()) return end();
    // ABORTED means that another run of the trial has replaced this one.
    if (status_.error_code() == grpc::StatusCode::ABORTED) {
      std::fprintf(stderr, "error: another process runs this trial (%s); this process ends\n",
                   status_.error_message().c_str());
      std::_Exit(kExitStaleRun);
    }
    stream_.reset();
    if (stopping_) {
      events_.Shutdown();
      return;
    }
    if (!told_outage_ && !status_.ok()) {
      // A quota is exhausted: the master answers, and takes the reports when there is room again.
      const bool full = status_.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
      std::fprintf(stderr, "warning: the master %s (%s); training goes on, reports are kept\n",
                   full ? "takes no reports for now" : "does not answer", status_.error_message().c_str());
      told_outage_ = true;
    }
    const auto wait = static_cast<std::int64_t>(wait_ms_ * (0.5 + random_.uniform()));
    wait_ms_ = std::min(wait_ms_ * 2, kMaxConnectMs);
    waiting_ = true;
    retry_alarm_.Set(&events_,
                     gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(wait, GPR_TIMESPAN)),
                     tag(kRetry));
  }

  /// The master has ended this trial outside the cluster, after our report or a user's request. Unsent
  /// reports are dropped.
  void end() {
    const bool ours = !spool_.empty() && spool_.front().message.report().has_end();
    if (!ours && !stopping_) {
      std::fprintf(stderr, "warning: the master has ended this trial (%s); reports are dropped\n",
                   status_.error_message().c_str());
    }
    ended_ = true;
    preempt();
    stream_.reset();
    send_next();
    if (stopping_) events_.Shutdown();
  }

  void stop() {
    alive_alarm_.Cancel();
    if (ended_) {
      events_.Shutdown();
    } else if (waiting_) {
      retry_alarm_.Cancel();
    } else {
      context_->TryCancel();
    }
  }

  const ClusterAddress address_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::CompletionQueue events_;
  Random random_;

  // Shared between the threads.
  Queue<Entry> queue_{kSpoolReports};
  Event acknowledged_some_;  // wakes one waiting thread
  std::atomic<std::int64_t> spooled_{0}, added_{0}, acknowledged_{0};
  std::atomic<bool> preempted_{false}, stopping_{false}, awake_{false};
  grpc::Alarm wake_alarm_;
  ProfileMailbox profile_;

  // Used by the reporter thread only.
  std::deque<Entry> spool_;
  std::int64_t last_sequence_ = 0;
  std::size_t next_ = 0;  // index in spool_ of the first report not yet sent on this stream
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::HarnessMessage, v1::MasterMessage>> stream_;
  v1::MasterMessage incoming_;
  grpc::Status status_;
  grpc::Alarm retry_alarm_, alive_alarm_;
  int outstanding_ = 0, wait_ms_ = kFirstConnectMs;
  bool attached_ = false, writing_ = false, failed_ = false, waiting_ = false, told_outage_ = false;
  bool alive_due_ = false, ended_ = false;
  std::int64_t alive_ms_ = 0;  // keep-alive interval set by the master; 0: none
  std::thread thread_;
};

class ClusterClient final : public Client {
 public:
  explicit ClusterClient(const ClusterAddress& address)
      : detached_(!address.user_token.empty()),
        reporter_(address),
        media_([this, address](const MediaRecord& record) { return send_media(address, record); }) {}

  void report_metrics(const std::string& group, std::int64_t steps_completed, const Json& metrics) override {
    v1::Report report;
    report.mutable_metrics()->set_group(group);
    report.mutable_metrics()->set_steps_completed(steps_completed);
    report.mutable_metrics()->set_metrics(dump_json(metrics));
    reporter_.add(std::move(report));
  }
  void report_progress(double progress, std::int64_t steps_completed) override {
    v1::Report report;
    report.mutable_progress()->set_progress(progress);
    report.mutable_progress()->set_steps_completed(steps_completed);
    reporter_.add(std::move(report));
  }
  void report_media(const MediaRecord& record) override { media_.add(record); }
  void report_checkpoint(const CheckpointRecord& record) override {
    // A run that resumes from the checkpoint does not repeat the media before it.
    (void)media_.flush(kMediaPatience);
    v1::Report report;
    v1::CheckpointReport& checkpoint = *report.mutable_checkpoint();
    checkpoint.set_uuid(record.uuid);
    checkpoint.set_steps_completed(record.steps_completed);
    for (const auto& [path, bytes] : record.resources) (*checkpoint.mutable_resources())[path] = bytes;
    checkpoint.set_metadata(dump_json(record.metadata));
    reporter_.add(std::move(report));
  }
  std::optional<ProfileRequest> take_profile_request() override { return reporter_.profile().take(); }
  void report_profile(const ProfileProgress& progress) override {
    reporter_.profile().update(progress);
    reporter_.profile_changed();
  }
  void refuse_profiles(const std::string& reason) override {
    reporter_.profile().refuse(reason);
    reporter_.profile_changed();
  }
  void report_invalid_hp() override {
    v1::Report report;
    report.mutable_invalid_hp();
    reporter_.add(std::move(report));
  }
  bool should_preempt() const override { return reporter_.preempted(); }
  bool backlogged() const override { return reporter_.backlogged(); }
  void acknowledge_preemption() override {
    v1::Report report;
    report.mutable_preemption_acknowledged();
    reporter_.add(std::move(report));
  }
  void report_end(bool failed, const std::string& message) override {
    if (!detached_) return;
    v1::Report report;
    report.mutable_end()->set_state(failed ? v1::STATE_ERROR : v1::STATE_COMPLETED);
    report.mutable_end()->set_message(make_utf8(message.substr(0, kMaxMessage)));
    reporter_.add(std::move(report));
  }
  bool flush(std::chrono::seconds timeout) override {
    const MonoTime deadline = mono_now() + timeout;
    if (!media_.flush(timeout)) return false;
    const Duration left = std::max(Duration(0), deadline - mono_now());
    return reporter_.flush(std::chrono::ceil<std::chrono::seconds>(left));
  }

 private:
  /// Runs on the thread of media_.
  Status send_media(const ClusterAddress& address, const MediaRecord& record) {
    beat();
    if (!media_channel_) media_channel_ = make_channel(address);
    v1::ReportMediaRequest request;
    v1::Media::Kind kind = v1::Media::KIND_UNSPECIFIED;
    v1::Media::Kind_Parse("KIND_" + record.kind, &kind);
    request.set_trial_id(address.trial_id);
    request.set_name(record.name);
    request.set_steps_completed(record.steps_completed);
    request.set_kind(kind);
    request.set_caption(record.caption);
    request.set_content(record.content);
    request.set_file_name(record.file_name);
    grpc::ClientContext context;
    add_credentials(context, address);
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(60, GPR_TIMESPAN)));
    v1::ReportMediaResponse response;
    const grpc::Status status =
        wire::call(media_channel_, v1::MediaService::ReportMedia, context, request, response);
    if (status.ok()) return {};
    return fail(static_cast<Code>(status.error_code()), status.error_message());
  }

  const bool detached_;
  std::shared_ptr<grpc::Channel> media_channel_;  ///< made at first use, by the thread of media_
  Reporter reporter_;
  MediaSender media_;  ///< last: its thread uses the channel
};

}  // namespace
}  // namespace det

extern "C" det::Client* det_make_cluster_client(const det::ClusterAddress* address) {
  return new det::ClusterClient(*address);
}
