// Owns TaskService: a trial's task, its context, and lines that its processes send themselves.
#pragma once

#include "det/v1/task.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class TaskService final : public v1::TaskService::CallbackService {
 public:
  explicit TaskService(const Context& context) : context_(context) {}
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
