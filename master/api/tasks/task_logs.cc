// Handlers of TaskService for logs and the filters of logs.
#include "common/base/text.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/log.h"
#include "master/api/tasks/task.h"
#include "master/db/queries/commands.h"
#include "master/db/queries/trials.h"

namespace det::api {
namespace {

/// Sends one LogFields message, about the task that `task` finds for an authorized request. Deletes itself.
template <typename Request>
class Fields : public grpc::ServerWriteReactor<v1::LogFields> {
 public:
  using FindTask = Result<TaskId> (*)(const Request&, db::Pool&);
  Fields(const Context& context, grpc::CallbackServerContext* call, const char* method,
         const Unread<Request>& request, FindTask task) {
    const bool taken = context.pools.read.try_post(
        [this, &context, credentials = read_credentials(*call), method, bytes = request.bytes, task] {
          const auto admitted = read_authorized<Request>(context, method, credentials, bytes);
          if (!admitted) return Finish(to_grpc(admitted.error()));
          const Status done = find(*admitted->request, context.pool, task);
          if (!done) return Finish(to_grpc(done.error()));
          StartWriteAndFinish(&fields_, {}, grpc::Status::OK);
        });
    if (!taken) Finish(to_grpc(busy()));
  }
  void OnDone() override { delete this; }

 private:
  Status find(const Request& request, db::Pool& pool, FindTask task) {
    TRY_ASSIGN(const TaskId id, task(request, pool));
    TRY_ASSIGN(const db::LogFields found, db::log_fields(pool, id));
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

/// Returns the task that a request names. Errors: kNotFound.
template <typename Request>
Result<TaskId> named_task(const Request& request, db::Pool& pool) {
  const TaskId id(make_utf8(request.task_id()));
  TRY(db::get_task(pool, id));
  return id;
}

/// Returns the task of the trial that a request names. Errors: kNotFound.
Result<TaskId> task_of_trial(const v1::TrialLogsFieldsRequest& request, db::Pool& pool) {
  TRY_ASSIGN(const auto row, db::get_trial(pool, TrialId(request.trial_id())));
  return row.trial.task;
}

}  // namespace

grpc::ServerWriteReactor<v1::LogEntry>* TaskService::TaskLogs(grpc::CallbackServerContext* call,
                                                              const Unread<v1::TaskLogsRequest>& request) {
  return read_log(context_, call, "/det.v1.TaskService/TaskLogs", request, &named_task<v1::TaskLogsRequest>);
}

grpc::ServerWriteReactor<v1::LogFields>* TaskService::TaskLogsFields(
    grpc::CallbackServerContext* call, const Unread<v1::TaskLogsFieldsRequest>& request) {
  return new Fields<v1::TaskLogsFieldsRequest>(context_, call, "/det.v1.TaskService/TaskLogsFields", request,
                                               &named_task<v1::TaskLogsFieldsRequest>);
}

grpc::ServerWriteReactor<v1::LogFields>* TaskService::TrialLogsFields(
    grpc::CallbackServerContext* call, const Unread<v1::TrialLogsFieldsRequest>& request) {
  return new Fields<v1::TrialLogsFieldsRequest>(context_, call, "/det.v1.TaskService/TrialLogsFields",
                                                request, &task_of_trial);
}

}  // namespace det::api
