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
                                                    const Unread<v1::TrialLogsRequest>& request);

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

/// Streams the log of the task that `task` finds for an authorized request, as LogService::TrialLogs does.
/// The stream is owned by gRPC and deletes itself. Defined for TrialLogsRequest and TaskLogsRequest.
template <typename Request>
grpc::ServerWriteReactor<v1::LogEntry>* read_log(const Context& context, grpc::CallbackServerContext* call,
                                                 const char* method, const Unread<Request>& request,
                                                 Result<TaskId> (*task)(const Request&, db::Pool&));

}  // namespace det::api
