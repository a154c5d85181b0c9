// Handlers of TaskService for logs and the filters of logs.
#include "common/base/text.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/log.h"
#include "master/api/tasks/task.h"
#include "master/db/queries/commands.h"
#include "master/db/queries/trials.h"

namespace det::api {
namespace {

/// Sends one LogFields message. Runs on a worker. Deletes itself.
class Fields : public grpc::ServerWriteReactor<v1::LogFields> {
 public:
  Fields(const Context& context, grpc::CallbackServerContext* call, const char* method,
         std::shared_ptr<const google::protobuf::Message> request,
         std::function<Result<TaskId>(db::Pool&)> task) {
    const bool taken = context.pools.read.try_post(
        [this, &context, credentials = read_credentials(*call), method, request, task = std::move(task)] {
          const Status done = find(context, credentials, method, *request, task);
          if (!done) return Finish(to_grpc(done.error()));
          StartWriteAndFinish(&fields_, {}, grpc::Status::OK);
        });
    if (!taken) Finish(to_grpc(busy()));
  }
  void OnDone() override { delete this; }

 private:
  Status find(const Context& context, const Credentials& credentials, const char* method,
              const google::protobuf::Message& request,
              const std::function<Result<TaskId>(db::Pool&)>& task) {
    TRY(authorize(method, credentials, *context.sessions, &request));
    TRY_ASSIGN(const TaskId id, task(context.pool));
    TRY_ASSIGN(const db::LogFields found, db::log_fields(context.pool, id));
    fields_.mutable_allocation_ids()->Assign(found.allocations.begin(), found.allocations.end());
    fields_.mutable_agent_ids()->Assign(found.agents.begin(), found.agents.end());
    // Each allocation is its own container.
    fields_.mutable_container_ids()->Assign(found.allocations.begin(), found.allocations.end());
    fields_.mutable_rank_ids()->Add(found.ranks.begin(), found.ranks.end());
    fields_.mutable_stdtypes()->Assign(found.stdtypes.begin(), found.stdtypes.end());
    fields_.mutable_sources()->Assign(found.sources.begin(), found.sources.end());
    return {};
  }

  v1::LogFields fields_;
};

/// Resolves a task id. Errors: kNotFound.
std::function<Result<TaskId>(db::Pool&)> existing(const std::string& task) {
  return [id = TaskId(make_utf8(task))](db::Pool& pool) -> Result<TaskId> {
    TRY(db::get_task(pool, id));
    return id;
  };
}

}  // namespace

grpc::ServerWriteReactor<v1::LogEntry>* TaskService::TaskLogs(grpc::CallbackServerContext* call,
                                                              const v1::TaskLogsRequest* request) {
  LogReading reading{.method = "/det.v1.TaskService/TaskLogs",
                     .request = std::make_shared<const v1::TaskLogsRequest>(*request),
                     .task = existing(request->task_id()),
                     .filter = log_filter(*request),
                     .limit = request->limit(),
                     .follow = request->follow()};
  reading.filter.after_id = request->after_id();
  return read_log(context_, call, std::move(reading));
}

grpc::ServerWriteReactor<v1::LogFields>* TaskService::TaskLogsFields(
    grpc::CallbackServerContext* call, const v1::TaskLogsFieldsRequest* request) {
  return new Fields(context_, call, "/det.v1.TaskService/TaskLogsFields",
                    std::make_shared<const v1::TaskLogsFieldsRequest>(*request),
                    existing(request->task_id()));
}

grpc::ServerWriteReactor<v1::LogFields>* TaskService::TrialLogsFields(
    grpc::CallbackServerContext* call, const v1::TrialLogsFieldsRequest* request) {
  return new Fields(context_, call, "/det.v1.TaskService/TrialLogsFields",
                    std::make_shared<const v1::TrialLogsFieldsRequest>(*request),
                    [id = TrialId(request->trial_id())](db::Pool& pool) -> Result<TaskId> {
                      TRY_ASSIGN(const auto row, db::get_trial(pool, id));
                      return row.trial.task;
                    });
}

}  // namespace det::api
