// Owns the reading of logs: a trial's or a task's, paged from the database and followed by notification.
#pragma once

#include "det/v1/log.pb.h"
#include "master/api/service.h"
#include "master/db/queries_log.h"

namespace det::api {

class LogService final : public Service {
 public:
  explicit LogService(const Context& context);
  grpc::ServerWriteReactor<v1::LogEntry>* TrialLogs(grpc::CallbackServerContext* call,
                                                    const v1::TrialLogsRequest* request);
};

/// A log that somebody reads.
struct LogReading {
  const char* method = "";                                   ///< of the call, for its rules
  std::shared_ptr<const google::protobuf::Message> request;  ///< likewise
  std::function<Result<TaskId>(db::Pool&)> task;             ///< whose log; asked once the caller is let in
  db::LogFilter filter;                                      ///< but for the task
  std::int64_t limit = 0;                                    ///< lines wanted; 0: all
  bool follow = false;
};
/// Owned by gRPC.
grpc::ServerWriteReactor<v1::LogEntry>* read_log(const Context& context, grpc::CallbackServerContext* call,
                                                 LogReading reading);

/// What a request asks of the database, but for the task and the page.
template <typename Request>
db::LogFilter log_filter(const Request& request);

}  // namespace det::api
