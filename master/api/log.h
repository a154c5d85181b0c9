// Owns LogService: a task's log, paged from the database and followed by notification.
#pragma once

#include "det/v1/log.grpc.pb.h"
#include "master/api/unary.h"
#include "master/db/queries_log.h"

namespace det::api {

class LogService final : public v1::LogService::CallbackService {
 public:
  explicit LogService(const Context& context) : context_(context) {}
  grpc::ServerWriteReactor<v1::LogEntry>* TrialLogs(grpc::CallbackServerContext* call,
                                                    const v1::TrialLogsRequest* request) override;
  grpc::ServerWriteReactor<v1::LogEntry>* TaskLogs(grpc::CallbackServerContext* call,
                                                   const v1::TaskLogsRequest* request) override;

 private:
  const Context& context_;
};

/// What the request asks of the database, but for task, page and order.
db::LogFilter log_filter(const v1::TrialLogsRequest& request);

}  // namespace det::api
