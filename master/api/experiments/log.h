// LogService: streams the log of a trial. read_log() is also the reader of task logs. Lines are paged from
// the database; new ones are announced by the hub.
#pragma once

#include "det/v1/log.pb.h"
#include "master/api/service.h"
#include "master/db/queries/logs.h"

namespace det::api {

/// See also TaskService::TaskLogs.
class LogService final : public Service {
 public:
  explicit LogService(const Context& context);
  /// Streams log lines in order of id. With `follow` the stream continues until the trial has ended and all
  /// its lines are sent.
  grpc::ServerWriteReactor<v1::LogEntry>* TrialLogs(grpc::CallbackServerContext* call,
                                                    const v1::TrialLogsRequest* request);

  // Retention (log_retention.cc). Errors of the three changes: kInvalidArgument for a number of days that is
  // not from -1 to 32767.
  Status PutTrialRetainLogs(const Caller& caller, const v1::PutTrialRetainLogsRequest& request,
                            v1::PutRetainLogsResponse* response);
  Status PutExperimentRetainLogs(const Caller& caller, const v1::PutExperimentRetainLogsRequest& request,
                                 v1::PutRetainLogsResponse* response);
  /// Each experiment has its own result.
  Status PutExperimentsRetainLogs(const Caller& caller, const v1::PutExperimentsRetainLogsRequest& request,
                                  v1::PutExperimentsRetainLogsResponse* response);
  Status GetTrialRemainingLogRetentionDays(const Caller& caller,
                                           const v1::GetTrialRemainingLogRetentionDaysRequest& request,
                                           v1::GetTrialRemainingLogRetentionDaysResponse* response);
  Status CleanupLogs(const Caller& caller, const v1::CleanupLogsRequest& request,
                     v1::CleanupLogsResponse* response);
};

/// Parameters of one log stream.
struct LogReading {
  const char* method = "";                                   ///< full method name, for authorization
  std::shared_ptr<const google::protobuf::Message> request;  ///< also for authorization
  /// Resolves the task. Called on a worker after the caller has been authorized.
  std::function<Result<TaskId>(db::Pool&)> task;
  db::LogFilter filter;    ///< without the task
  std::int64_t limit = 0;  ///< maximum number of lines; 0: all
  bool follow = false;
};
/// Starts a log stream. The result is owned by gRPC and deletes itself.
grpc::ServerWriteReactor<v1::LogEntry>* read_log(const Context& context, grpc::CallbackServerContext* call,
                                                 LogReading reading);

/// Filter of a request, without task and page. Defined for TrialLogsRequest and TaskLogsRequest.
template <typename Request>
db::LogFilter log_filter(const Request& request);

}  // namespace det::api
