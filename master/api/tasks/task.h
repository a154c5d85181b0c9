// TaskService: tasks of trials and commands, their logs, and code archives for their processes.
#pragma once

#include "det/v1/task.pb.h"
#include "master/api/service.h"
#include "master/db/queries/allocations.h"

namespace det::api {

class Tunnels;

/// Converts an allocation to the format of Determined AI.
void to_proto(const db::AllocationRow& row, const TaskId& task, v1::TaskAllocation* out);

/// A task is a trial or a command; its allocations are its runs.
class TaskService final : public Service {
 public:
  /// `tunnels` must outlive the service's calls.
  TaskService(const Context& context, Tunnels& tunnels);
  /// Connects the caller to a port of a task (tunnels.h).
  grpc::ServerBidiReactor<v1::TunnelMessage, v1::TunnelMessage>* Connect(grpc::CallbackServerContext* call);
  /// Connects a caller without a login to the SSH server of a shell.
  grpc::ServerBidiReactor<v1::TunnelMessage, v1::TunnelMessage>* ConnectSsh(
      grpc::CallbackServerContext* call);
  /// Returns a summary of each live allocation that the caller may see, by id.
  Status GetTasks(const Caller& caller, const v1::GetTasksRequest& request, v1::GetTasksResponse* response);
  /// Counts live commands and interactive tasks that the caller may see. Trials are not counted.
  Status GetActiveTasksCount(const Caller& caller, const v1::GetActiveTasksCountRequest& request,
                             v1::GetActiveTasksCountResponse* response);
  /// Streams the log of a task, as LogService::TrialLogs (task_logs.cc).
  grpc::ServerWriteReactor<v1::LogEntry>* TaskLogs(grpc::CallbackServerContext* call,
                                                   const Unread<v1::TaskLogsRequest>& request);
  /// Returns the values that log lines can be filtered by, as a single message (task_logs.cc).
  grpc::ServerWriteReactor<v1::LogFields>* TaskLogsFields(grpc::CallbackServerContext* call,
                                                          const Unread<v1::TaskLogsFieldsRequest>& request);
  /// As TaskLogsFields, for the task of a trial.
  grpc::ServerWriteReactor<v1::LogFields>* TrialLogsFields(grpc::CallbackServerContext* call,
                                                           const Unread<v1::TrialLogsFieldsRequest>& request);
  /// Returns a task and its allocations. Errors: kNotFound.
  Status GetTask(const Caller& caller, const v1::GetTaskRequest& request, v1::GetTaskResponse* response);
  /// Lists the devices of a task by allocation and agent. Devices of agents that are not known any more are
  /// left out. Errors: kNotFound.
  Status GetTaskAcceleratorData(const Caller& caller, const v1::GetTaskRequest& request,
                                v1::GetTaskAcceleratorDataResponse* response);
  /// Returns the code archive of a trial's task in base64; empty when it has none. For users and for
  /// processes of the trial. Errors: kNotFound.
  Status GetTaskContextDirectory(const Caller& caller, const v1::GetTaskContextDirectoryRequest& request,
                                 v1::GetTaskContextDirectoryResponse* response);
  /// Launches a generic task (generic_task.cc). Errors: those of launch_command(); kUnimplemented for a
  /// parent task; kNotFound for a fork of a task that is none; kPermissionDenied for a fork of a task that
  /// the caller may not change.
  Status CreateGenericTask(const Caller& caller, const v1::CreateGenericTaskRequest& request,
                           v1::CreateGenericTaskResponse* response);
  /// Returns the submitted configuration as JSON, secrets masked. Errors: kNotFound.
  Status GetGenericTaskConfig(const Caller& caller, const v1::GetGenericTaskConfigRequest& request,
                              v1::GetGenericTaskConfigResponse* response);
  /// Idempotent. Errors: kNotFound.
  Status PauseGenericTask(const Caller& caller, const v1::PauseGenericTaskRequest& request,
                          v1::PauseGenericTaskResponse* response);
  Status UnpauseGenericTask(const Caller& caller, const v1::UnpauseGenericTaskRequest& request,
                            v1::UnpauseGenericTaskResponse* response);
  Status KillGenericTask(const Caller& caller, const v1::KillGenericTaskRequest& request,
                         v1::KillGenericTaskResponse* response);
  /// Stores up to 1,000 log lines that processes send themselves; lines are cut at 64 KiB. Durable when it
  /// returns. Not idempotent: a repeat appends the lines again.
  Status PostTaskLogs(const Caller& caller, const v1::PostTaskLogsRequest& request,
                      v1::PostTaskLogsResponse* response);

 private:
  Tunnels& tunnels_;
};

}  // namespace det::api
