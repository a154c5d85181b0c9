#include "master/api/task.h"

#include <map>

#include "base/secret.h"
#include "base/text.h"
#include "master/api/convert.h"
#include "master/api/reporter.h"
#include "master/db/experiment_changes.h"
#include "master/db/queries_allocation.h"
#include "master/db/queries_command.h"
#include "master/db/queries_model.h"

namespace det::api {
namespace {

constexpr int kMostLines = 1000;
constexpr std::size_t kLongestLine = 64 << 10;

}  // namespace

grpc::ServerUnaryReactor* TaskService::GetTask(grpc::CallbackServerContext* call, const v1::GetTaskRequest* request,
                                               v1::GetTaskResponse* response) {
  auto body = [this, request, response](const Caller&) -> Status {
    const TaskId id(request->task_id());
    TRY_ASSIGN(const db::TaskFacts facts, db::get_task(context_.pool, id));
    v1::Task* task = response->mutable_task();
    task->set_task_id(id.value);
    TrialId holder = facts.trial;
    if (facts.trial.value != 0) {
      TRY_ASSIGN(const db::TrialRow trial, db::get_trial(context_.pool, facts.trial));
      task->set_task_type(v1::TASK_TYPE_TRIAL);
      to_proto(trial.trial.started, task->mutable_start_time());
      if (trial.trial.ended) to_proto(*trial.trial.ended, task->mutable_end_time());
    } else {
      TRY_ASSIGN(const db::CommandRow row, db::get_command(context_.pool, id));
      task->set_task_type(v1::TASK_TYPE_COMMAND);
      to_proto(row.command.submitted, task->mutable_start_time());
      if (row.command.ended) to_proto(*row.command.ended, task->mutable_end_time());
      holder = core::as_trial(row.command.id);
    }
    TRY_ASSIGN(const auto allocations, db::list_allocations(context_.pool, holder));
    for (const db::AllocationRow& row : allocations) {
      v1::TaskAllocation* out = task->add_allocations();
      out->set_task_id(id.value);
      out->set_allocation_id(row.id.value);
      out->set_state(row.ended ? v1::STATE_COMPLETED : v1::STATE_RUNNING);
      int slots = 0;
      for (const core::AllocationPart& part : row.parts) slots += static_cast<int>(part.slots.size());
      out->set_slots(slots);
      out->set_exit_reason(row.exit_message.value_or(""));
      to_proto(row.started, out->mutable_start_time());
      if (row.ended) to_proto(*row.ended, out->mutable_end_time());
    }
    return {};
  };
  return unary(context_, call, request, "/det.v1.TaskService/GetTask", body);
}

grpc::ServerUnaryReactor* TaskService::GetTaskContextDirectory(grpc::CallbackServerContext* call,
                                                               const v1::GetTaskContextDirectoryRequest* request,
                                                               v1::GetTaskContextDirectoryResponse* response) {
  auto body = [this, request, response](const Caller& caller) -> Status {
    TRY(admit(context_, caller, {}));  // before it could learn which tasks there are
    TRY_ASSIGN(const TrialId trial_id, db::trial_of_task(context_.pool, TaskId(request->task_id())));
    TRY(admit(context_, caller, {.trial = trial_id}));
    TRY_ASSIGN(const db::TrialRow trial, db::get_trial(context_.pool, trial_id));
    auto bytes = db::get_model_definition(context_.pool, trial.trial.experiment);
    // An experiment without a context has an empty one.
    if (!bytes && bytes.error().code == Code::kNotFound) return {};
    if (!bytes) return tl::unexpected(bytes.error());
    response->set_b64_tgz(to_base64(*bytes));
    return {};
  };
  return unary(context_, call, request, "/det.v1.TaskService/GetTaskContextDirectory", body);
}

Status TaskService::append(const Caller& caller, const v1::PostTaskLogsRequest& request) const {
  if (request.logs_size() > kMostLines)
    return fail(Code::kInvalidArgument, "logs: at most " + std::to_string(kMostLines) + " lines in one call");
  TRY(find_reporter(context_, caller, {}));
  std::map<std::string, std::vector<db::SentLine>> by_task;
  std::map<std::string, Reporter> reporters;
  for (const v1::TaskLog& line : request.logs()) {
    auto known = reporters.find(line.allocation_id());
    if (known == reporters.end()) {
      TRY_ASSIGN(Reporter reporter,
                 find_reporter(context_, caller, {.allocation = AllocationId(line.allocation_id())}));
      known = reporters.emplace(line.allocation_id(), std::move(reporter)).first;
    }
    const Reporter& reporter = known->second;
    if (line.task_id() != reporter.task.value)
      return fail(Code::kInvalidArgument, "logs: task_id is not that of the allocation");
    by_task[line.task_id()].push_back(
        {.allocation = reporter.allocation,
         .agent = reporter.parts.empty() ? AgentId() : reporter.parts.front().agent,
         .rank = line.rank_id(),
         .time = line.has_timestamp() ? from_proto(line.timestamp()) : wall_now(),
         .level = log_level_name(line.level()),
         .stdtype = line.stdtype() == "stderr" ? "stderr" : "stdout",
         .source = "task",
         .text = std::string(trim(line.log().substr(0, kLongestLine)))});
  }
  for (const auto& [task, lines] : by_task) {
    TRY(db::append_lines(context_.pool, TaskId(task), lines));
    context_.hub.publish(
        {.kind = loop::Change::Kind::kLogs, .experiment = {}, .trial = {}, .task = TaskId(task), .name = ""});
  }
  return {};
}

grpc::ServerUnaryReactor* TaskService::PostTaskLogs(grpc::CallbackServerContext* call,
                                                    const v1::PostTaskLogsRequest* request,
                                                    v1::PostTaskLogsResponse*) {
  return unary(context_, call, request, "/det.v1.TaskService/PostTaskLogs",
               [this, request](const Caller& caller) { return append(caller, *request); });
}

}  // namespace det::api
