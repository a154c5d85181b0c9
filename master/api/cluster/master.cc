#include "master/api/cluster/master.h"

#include <algorithm>

#include "common/base/log_history.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "det/v1/master.methods.h"
#include "master/api/auth/audit_record.h"
#include "master/api/convert/convert.h"

namespace det::api {
namespace {

constexpr std::size_t kMasterLogPage = 500;
constexpr std::size_t kMaxClusterMessage = 250;  // bytes, as in Determined AI
constexpr const char* kMasterLogs = "/det.v1.MasterService/MasterLogs";

v1::LogLevel level_to_proto(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return v1::LOG_LEVEL_TRACE;
    case LogLevel::kDebug:
      return v1::LOG_LEVEL_DEBUG;
    case LogLevel::kInfo:
      return v1::LOG_LEVEL_INFO;
    case LogLevel::kWarning:
      return v1::LOG_LEVEL_WARNING;
    case LogLevel::kError:
      return v1::LOG_LEVEL_ERROR;
  }
  return v1::LOG_LEVEL_UNSPECIFIED;
}

/// Number of the line before the first one to send.
std::uint64_t first_after(std::int64_t offset) {
  if (offset >= 0) return static_cast<std::uint64_t>(offset);
  const auto newest = static_cast<std::int64_t>(log::newest_line());
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, newest + offset));
}

}  // namespace

/// One log stream. Authorization runs on a worker, writes on threads of gRPC, everything else on the edge
/// worker. Keeps itself alive until gRPC calls OnDone.
class MasterService::Reader : public grpc::ServerWriteReactor<v1::MasterLogsResponse>,
                              public std::enable_shared_from_this<Reader> {
 public:
  Reader(MasterService& service, grpc::CallbackServerContext* call,
         const Unread<v1::MasterLogsRequest>& request)
      : service_(service),
        context_(service.context_),
        call_(call),
        credentials_(read_credentials(*call)),
        bytes_(request.bytes) {}

  void start() {
    self_ = shared_from_this();
    if (!context_.pools.read.try_post([self = self_] { self->open(); })) Finish(to_grpc(busy()));
  }

  void OnWriteDone(bool ok) override {
    if (ok && ++next_ < lines_.size()) return write();
    on_edge([self = self_, ok] { ok ? self->page_written() : self->finish(grpc::Status::CANCELLED); });
  }
  void OnCancel() override {
    on_edge([self = self_] {
      self->ended_ = grpc::Status::CANCELLED;
      if (self->waiting_) self->finish(*self->ended_);
    });
  }
  void OnDone() override {
    on_edge([self = std::move(self_)] {
      if (self->watched_ != 0) self->context_.streams->close(self->watched_);
    });
  }

  /// Continues when there are new lines. Edge worker.
  void look() {
    if (!waiting_ || log::newest_line() <= after_) return;
    waiting_ = false;
    read();
  }

 private:
  void on_edge(loop::Workers::Job job) { context_.edge.post(std::move(job)); }

  void open() {
    auto admitted = read_authorized<v1::MasterLogsRequest>(context_, kMasterLogs, credentials_, bytes_);
    if (!admitted) return Finish(to_grpc(admitted.error()));
    request_ = std::move(admitted->request);
    if (request_->limit() > 0) left_ = static_cast<std::size_t>(request_->limit());
    // Recorded like a change: the log may contain data of all users.
    audit(context_.pool, admitted->caller, kMasterLogs, request_.get(), {});
    // Opens the response of the gateway, although the first line may take long.
    call_->AddInitialMetadata("x-det-open", "1");
    StartSendInitialMetadata();
    watched_ = context_.streams->open(kMasterLogs, credentials_, request_,
                                      [weak = weak_from_this()](const Error& error) {
                                        if (auto self = weak.lock())
                                          self->on_edge([self, error] { self->cut(error); });
                                      });
    on_edge([self = self_] {
      // Closed streams are removed when the next one opens.
      std::erase_if(self->service_.readers_, [](const auto& other) { return other.expired(); });
      self->service_.readers_.push_back(self);
      self->after_ = first_after(self->request_->offset());
      self->read();
    });
  }

  /// Ends the stream after the write in flight, because the caller may no longer read.
  void cut(const Error& error) {
    ended_ = to_grpc(error);
    if (waiting_) finish(*ended_);
  }

  void read() {
    // The rights may have ended while a page was written.
    if (ended_) return finish(*ended_);
    lines_ = log::history(after_, std::min(kMasterLogPage, left_));
    next_ = 0;
    if (!lines_.empty()) return write();
    if (!request_->follow() || left_ == 0) return finish(grpc::Status::OK);
    // look() continues from here.
    waiting_ = true;
  }

  void write() {
    const log::Line& line = lines_[next_];
    v1::MasterLogsResponse::Entry* entry = message_.mutable_log_entry();
    entry->set_id(static_cast<std::int32_t>(line.id));
    entry->set_message(make_utf8(line.text));
    to_proto_time(line.time, entry->mutable_timestamp());
    entry->set_level(level_to_proto(line.level));
    StartWrite(&message_);
  }

  void page_written() {
    after_ = lines_.back().id;
    if (left_ != SIZE_MAX) left_ -= lines_.size();
    read();
  }

  void finish(const grpc::Status& status) {
    waiting_ = false;
    if (!std::exchange(finished_, true)) Finish(status);
  }

  static void to_proto_time(WallTime time, google::protobuf::Timestamp* out) { api::to_proto(time, out); }

  MasterService& service_;
  const Context& context_;
  grpc::CallbackServerContext* const call_;
  const Credentials credentials_;
  const grpc::ByteBuffer bytes_;
  std::shared_ptr<const v1::MasterLogsRequest> request_;  ///< set when the caller is authorized
  std::size_t left_ = SIZE_MAX;                           ///< remaining lines
  std::uint64_t after_ = 0;
  bool waiting_ = false, finished_ = false;
  std::optional<grpc::Status> ended_;  ///< set when the stream has to end
  Streams::Id watched_ = 0;
  std::vector<log::Line> lines_;
  std::size_t next_ = 0;
  v1::MasterLogsResponse message_;
  std::shared_ptr<Reader> self_;
};

MasterService::~MasterService() = default;

MasterService::MasterService(const Context& context) : Service(context, v1::MasterService::full_name) {
  unary(v1::MasterService::GetMasterConfig, &MasterService::GetMasterConfig);
  unary(v1::MasterService::PatchMasterConfig, &MasterService::PatchMasterConfig);
  unary(v1::MasterService::GetTelemetry, &MasterService::GetTelemetry);
  unary(v1::MasterService::GetClusterMessage, &MasterService::GetClusterMessage);
  unary(v1::MasterService::SetClusterMessage, &MasterService::SetClusterMessage);
  unary(v1::MasterService::DeleteClusterMessage, &MasterService::DeleteClusterMessage);
  server_stream(v1::MasterService::MasterLogs, &MasterService::MasterLogs);
}

Status MasterService::GetMasterConfig(const Caller&, const v1::GetMasterConfigRequest&,
                                      v1::GetMasterConfigResponse* response) {
  Json config = context_.settings.shown_config;
  // The level may have changed since the start.
  TRY(set_path(config, "log.level", std::string(log_level_name(det::log_level()))));
  // Clients of Determined AI read these. Agents are the only resource manager.
  config["resource_manager"] = {{"type", "agent"}};
  config["feature_switches"] = Json::array();
  to_struct(config, response->mutable_config());
  return {};
}

Status MasterService::PatchMasterConfig(const Caller& caller, const v1::PatchMasterConfigRequest& request,
                                        v1::PatchMasterConfigResponse*) {
  for (const std::string& path : request.field_mask().paths()) {
    if (path == "log" || path == "log.level") continue;
    return fail(Code::kInvalidArgument,
                "\"" + make_utf8(path) + "\" cannot be changed while the master runs; only log.level can");
  }
  if (request.config().log().level().empty())
    return fail(Code::kInvalidArgument,
                "config.log.level is missing: nothing else can be changed while the master runs");
  // "fatal" is a level of Determined AI only; "error" includes it here.
  const std::string& name = request.config().log().level();
  TRY_ASSIGN(const LogLevel level, parse_log_level(name == "fatal" ? "error" : name));
  set_log_level(level);
  log::info("log level set", {{"level", log_level_name(level)}, {"user", caller.user.name}});
  return {};
}

Status MasterService::GetTelemetry(const Caller&, const v1::GetTelemetryRequest&, v1::GetTelemetryResponse*) {
  return {};
}

void to_proto(const db::ClusterMessage& message, v1::ClusterMessage* out) {
  out->set_message(message.message);
  to_proto(message.starts, out->mutable_start_time());
  if (message.ends) to_proto(*message.ends, out->mutable_end_time());
  to_proto(message.created, out->mutable_created_time());
}

Status MasterService::GetClusterMessage(const Caller&, const v1::GetClusterMessageRequest&,
                                        v1::GetClusterMessageResponse* response) {
  TRY_ASSIGN(const auto message, db::get_cluster_message(context_.pool, false));
  if (message) to_proto(*message, response->mutable_cluster_message());
  return {};
}

Status MasterService::SetClusterMessage(const Caller&, const v1::SetClusterMessageRequest& request,
                                        v1::SetClusterMessageResponse*) {
  const std::string& text = request.message();
  if (trim(text).empty() || text.size() > kMaxClusterMessage || find_bad_utf8(text) ||
      text.find('\0') != std::string::npos)
    return fail(Code::kInvalidArgument, "message: 1 to 250 bytes of UTF-8");
  db::ClusterMessage message{.message = text, .starts = wall_now(), .ends = {}, .created = {}};
  if (request.has_start_time()) message.starts = from_proto(request.start_time());
  if (!request.duration().empty()) {
    if (request.has_end_time())
      return fail(Code::kInvalidArgument, "duration: cannot be combined with end_time; give one of them");
    TRY_ASSIGN(const Duration length, parse_duration(request.duration()));
    message.ends = WallTime{message.starts.micros + length.count()};
  } else if (request.has_end_time()) {
    message.ends = from_proto(request.end_time());
  }
  if (message.ends && *message.ends <= std::max(message.starts, wall_now()))
    return fail(Code::kInvalidArgument, "end_time: must be in the future and after start_time");
  return db::set_cluster_message(context_.pool, message);
}

Status MasterService::DeleteClusterMessage(const Caller&, const v1::DeleteClusterMessageRequest&,
                                           v1::DeleteClusterMessageResponse*) {
  return db::clear_cluster_message(context_.pool);
}

grpc::ServerWriteReactor<v1::MasterLogsResponse>* MasterService::MasterLogs(
    grpc::CallbackServerContext* call, const Unread<v1::MasterLogsRequest>& request) {
  auto reader = std::make_shared<Reader>(*this, call, request);
  reader->start();
  return reader.get();
}

void MasterService::tick() {
  for (const auto& weak : readers_)
    if (auto reader = weak.lock()) reader->look();
}

}  // namespace det::api
