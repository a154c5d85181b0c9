// Owns TaskService: a trial's task, its context, and lines that its processes send themselves.
#pragma once

#include "det/v1/task.pb.h"
#include "master/api/service.h"
#include "master/db/queries_allocation.h"

namespace det::api {

/// An attempt as upstream shows it.
void to_proto(const db::AllocationRow& row, const TaskId& task, v1::TaskAllocation* out);

class TaskService final : public Service {
 public:
  explicit TaskService(const Context& context);
  Status GetTasks(const Caller& caller, const v1::GetTasksRequest& request, v1::GetTasksResponse* response);
  Status GetActiveTasksCount(const Caller& caller, const v1::GetActiveTasksCountRequest& request,
                             v1::GetActiveTasksCountResponse* response);
  // task_logs.cc
  grpc::ServerWriteReactor<v1::LogEntry>* TaskLogs(grpc::CallbackServerContext* call,
                                                   const v1::TaskLogsRequest* request);
  grpc::ServerWriteReactor<v1::LogFields>* TaskLogsFields(grpc::CallbackServerContext* call,
                                                          const v1::TaskLogsFieldsRequest* request);
  grpc::ServerWriteReactor<v1::LogFields>* TrialLogsFields(grpc::CallbackServerContext* call,
                                                           const v1::TrialLogsFieldsRequest* request);
  Status GetTask(const Caller& caller, const v1::GetTaskRequest& request, v1::GetTaskResponse* response);
  Status GetTaskContextDirectory(const Caller& caller, const v1::GetTaskContextDirectoryRequest& request,
                                 v1::GetTaskContextDirectoryResponse* response);
  Status PostTaskLogs(const Caller& caller, const v1::PostTaskLogsRequest& request,
                      v1::PostTaskLogsResponse* response);
};

}  // namespace det::api
