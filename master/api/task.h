// Owns TaskService: a trial's task, its context, and lines that its processes send themselves.
#pragma once

#include "det/v1/task.grpc.pb.h"
#include "master/api/unary.h"
#include "master/db/queries_allocation.h"

namespace det::api {

/// An attempt as upstream shows it.
void to_proto(const db::AllocationRow& row, const TaskId& task, v1::TaskAllocation* out);

class TaskService final : public v1::TaskService::CallbackService {
 public:
  explicit TaskService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetTasks(grpc::CallbackServerContext* call, const v1::GetTasksRequest* request,
                                     v1::GetTasksResponse* response) override;
  grpc::ServerUnaryReactor* GetActiveTasksCount(grpc::CallbackServerContext* call,
                                                const v1::GetActiveTasksCountRequest* request,
                                                v1::GetActiveTasksCountResponse* response) override;
  // task_logs.cc
  grpc::ServerWriteReactor<v1::LogEntry>* TaskLogs(grpc::CallbackServerContext* call,
                                                   const v1::TaskLogsRequest* request) override;
  grpc::ServerWriteReactor<v1::LogFields>* TaskLogsFields(grpc::CallbackServerContext* call,
                                                          const v1::TaskLogsFieldsRequest* request) override;
  grpc::ServerWriteReactor<v1::LogFields>* TrialLogsFields(grpc::CallbackServerContext* call,
                                                           const v1::TrialLogsFieldsRequest* request) override;
  grpc::ServerUnaryReactor* GetTask(grpc::CallbackServerContext* call, const v1::GetTaskRequest* request,
                                    v1::GetTaskResponse* response) override;
  grpc::ServerUnaryReactor* GetTaskContextDirectory(grpc::CallbackServerContext* call,
                                                    const v1::GetTaskContextDirectoryRequest* request,
                                                    v1::GetTaskContextDirectoryResponse* response) override;
  grpc::ServerUnaryReactor* PostTaskLogs(grpc::CallbackServerContext* call, const v1::PostTaskLogsRequest* request,
                                         v1::PostTaskLogsResponse* response) override;

 private:
  Status append(const Caller& caller, const v1::PostTaskLogsRequest& request) const;
  const Context& context_;
};

}  // namespace det::api
