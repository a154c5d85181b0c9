#include "master/api/tasks/task.h"

#include <algorithm>
#include <map>

#include "common/base/secret.h"
#include "common/base/text.h"
#include "det/v1/task.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/reporter.h"
#include "master/api/streams/tunnels.h"
#include "master/db/queries/allocations.h"
#include "master/db/queries/code_archives.h"
#include "master/db/queries/commands.h"
#include "master/db/queries/logs.h"

namespace det::api {
namespace {

constexpr int kMaxTaskLogLines = 1000;
constexpr std::size_t kMaxTaskLogLine = 64 << 10;

/// Returns a line without the newline that clients of Determined AI send. Indentation stays.
std::string without_line_end(std::string line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return line;
}

v1::TaskAllocation::State task_state(std::optional<core::AllocationState> state) {
  if (!state) return v1::TaskAllocation::STATE_UNSPECIFIED;
  switch (*state) {
    case core::AllocationState::kAssigned:
    case core::AllocationState::kPulling:
      return v1::TaskAllocation::STATE_PULLING;
    case core::AllocationState::kStarting:
      return v1::TaskAllocation::STATE_STARTING;
    case core::AllocationState::kRunning:
      return v1::TaskAllocation::STATE_RUNNING;
    case core::AllocationState::kTerminating:
      return v1::TaskAllocation::STATE_TERMINATING;
    case core::AllocationState::kTerminated:
      break;
  }
  return v1::TaskAllocation::STATE_TERMINATED;
}

v1::GenericTaskState generic_task_state(core::State state) {
  switch (state) {
    case core::State::kActive:
      return v1::GENERIC_TASK_STATE_ACTIVE;
    case core::State::kPaused:
      return v1::GENERIC_TASK_STATE_PAUSED;
    case core::State::kStoppingCompleted:
      return v1::GENERIC_TASK_STATE_STOPPING_COMPLETED;
    case core::State::kStoppingCanceled:
    case core::State::kStoppingKilled:
      return v1::GENERIC_TASK_STATE_STOPPING_CANCELED;
    case core::State::kStoppingError:
      return v1::GENERIC_TASK_STATE_STOPPING_ERROR;
    case core::State::kCompleted:
      return v1::GENERIC_TASK_STATE_COMPLETED;
    case core::State::kCanceled:
      return v1::GENERIC_TASK_STATE_CANCELED;
    case core::State::kError:
      break;
  }
  return v1::GENERIC_TASK_STATE_ERROR;
}

v1::TaskType task_type(const std::string& interactive_kind) {
  if (interactive_kind == "NOTEBOOK") return v1::TASK_TYPE_NOTEBOOK;
  if (interactive_kind == "SHELL") return v1::TASK_TYPE_SHELL;
  if (interactive_kind == "TENSORBOARD") return v1::TASK_TYPE_TENSORBOARD;
  return v1::TASK_TYPE_COMMAND;
}

/// Returns the policy of a pool as Determined AI names it.
const char* scheduler_type(const core::Core& core, const std::string& pool) {
  const auto known = core.pools().find(pool);
  switch (known == core.pools().end() ? scheduler::Rules().policy : known->second.rules().policy) {
    case scheduler::Policy::kPriority:
      return "priority";
    case scheduler::Policy::kFairShare:
      return "fair_share";
    case scheduler::Policy::kRoundRobin:
      return "round_robin";
  }
  return "";
}

/// Runs on the core's thread.
v1::AllocationSummary summary_of(const core::Core& core, const core::Allocation& allocation) {
  v1::AllocationSummary out;
  if (const core::Command* command = core.command(allocation.task)) {
    out.set_task_id(command->task.value);
    out.set_name("Command " + command->task.value);
    out.set_priority(command->queue.priority);
  } else if (const core::Trial* trial = core.trial(allocation.task)) {
    const core::Experiment& experiment = core.experiments().at(trial->experiment);
    out.set_task_id(trial->task.value);
    out.set_name("Trial " + std::to_string(trial->id.value) + " (Experiment " +
                 std::to_string(experiment.id.value) + ")");
    out.set_priority(experiment.queue.priority);
  }
  out.set_allocation_id(allocation.id.value);
  api::to_proto(allocation.started, out.mutable_registered_time());
  out.set_resource_pool(allocation.pool);
  out.set_slots_needed(allocation.slot_count());
  out.set_scheduler_type(scheduler_type(core, allocation.pool));
  for (std::size_t i = 0; i < allocation.parts.size(); ++i) {
    const core::AllocationPart& part = allocation.parts[i];
    v1::ResourcesSummary* resources = out.add_resources();
    // One resource for each part, under the type name of Determined AI.
    resources->set_resources_id(allocation.id.value + "." + std::to_string(i));
    resources->set_resources_type("docker-container");
    resources->set_allocation_id(allocation.id.value);
    resources->set_container_id(allocation.id.value);
    auto& devices = (*resources->mutable_agent_devices())[part.agent.value];
    for (const int slot : part.slots) devices.add_devices()->set_id(slot);
  }
  return out;
}

}  // namespace

void to_proto(const db::AllocationRow& row, const TaskId& task, v1::TaskAllocation* out) {
  out->set_task_id(task.value);
  out->set_allocation_id(row.id.value);
  out->set_state(task_state(core::parse_allocation_state(row.state)));
  // There is no separate readiness signal.
  out->set_is_ready(out->state() == v1::TaskAllocation::STATE_RUNNING);
  int slots = 0;
  for (const core::AllocationPart& part : row.parts) slots += static_cast<int>(part.slots.size());
  out->set_slots(slots);
  out->set_exit_reason(row.exit_message.value_or(""));
  if (row.exit_code) out->set_status_code(static_cast<int>(*row.exit_code));
  to_proto(row.started, out->mutable_start_time());
  if (row.ended) to_proto(*row.ended, out->mutable_end_time());
}

TaskService::TaskService(const Context& context, Tunnels& tunnels)
    : Service(context, v1::TaskService::full_name), tunnels_(tunnels) {
  bidi_stream(v1::TaskService::Connect, &TaskService::Connect);
  bidi_stream(v1::TaskService::ConnectSsh, &TaskService::ConnectSsh);
  unary(v1::TaskService::GetTasks, &TaskService::GetTasks);
  unary(v1::TaskService::GetActiveTasksCount, &TaskService::GetActiveTasksCount);
  server_stream(v1::TaskService::TaskLogs, &TaskService::TaskLogs);
  server_stream(v1::TaskService::TaskLogsFields, &TaskService::TaskLogsFields);
  server_stream(v1::TaskService::TrialLogsFields, &TaskService::TrialLogsFields);
  unary(v1::TaskService::GetTask, &TaskService::GetTask);
  unary(v1::TaskService::GetTaskAcceleratorData, &TaskService::GetTaskAcceleratorData);
  unary(v1::TaskService::GetTaskContextDirectory, &TaskService::GetTaskContextDirectory);
  unary(v1::TaskService::CreateGenericTask, &TaskService::CreateGenericTask, context_.pools.submit);
  unary(v1::TaskService::GetGenericTaskConfig, &TaskService::GetGenericTaskConfig);
  unary(v1::TaskService::KillGenericTask, &TaskService::KillGenericTask);
  unary(v1::TaskService::PauseGenericTask, &TaskService::PauseGenericTask);
  unary(v1::TaskService::UnpauseGenericTask, &TaskService::UnpauseGenericTask);
  unary(v1::TaskService::PostTaskLogs, &TaskService::PostTaskLogs);
}

Tunnels::Reactor* TaskService::Connect(grpc::CallbackServerContext* call) { return tunnels_.connect(call); }

Tunnels::Reactor* TaskService::ConnectSsh(grpc::CallbackServerContext* call) {
  return tunnels_.connect_ssh(call);
}

Status TaskService::GetTasks(const Caller& caller, const v1::GetTasksRequest&,
                             v1::GetTasksResponse* response) {
  auto live = std::make_shared<std::vector<v1::AllocationSummary>>();
  TRY(context_.loop.inspect([live](const core::Core& core) {
    for (const auto& [id, allocation] : core.allocations())
      if (allocation.state != core::AllocationState::kTerminated)
        live->push_back(summary_of(core, allocation));
  }));
  std::vector<std::string> tasks;
  for (const v1::AllocationSummary& summary : *live) tasks.push_back(summary.task_id());
  TRY_ASSIGN(const auto visible, may_see(caller, db::Placed::kTask, tasks, context_.pool));
  for (std::size_t i = 0; i < live->size(); ++i) {
    v1::AllocationSummary& summary = (*live)[i];
    if (visible[i])
      (*response->mutable_allocation_id_to_summary())[summary.allocation_id()] = std::move(summary);
  }
  return {};
}

Status TaskService::GetActiveTasksCount(const Caller& caller, const v1::GetActiveTasksCountRequest&,
                                        v1::GetActiveTasksCountResponse* response) {
  auto tasks = std::make_shared<std::vector<std::string>>();
  TRY(context_.loop.inspect([tasks](const core::Core& core) {
    for (const auto& [id, command] : core.commands()) tasks->push_back(command.task.value);
  }));
  TRY_ASSIGN(const auto visible, may_see(caller, db::Placed::kTask, *tasks, context_.pool));
  TRY_ASSIGN(const auto kinds, db::interactive_kinds(context_.pool, *tasks));
  std::map<std::string, int> counts;
  for (std::size_t i = 0; i < tasks->size(); ++i) {
    const auto kind = kinds.find((*tasks)[i]);
    if (visible[i]) ++counts[kind == kinds.end() ? "" : kind->second];
  }
  response->set_commands(counts[""]);
  response->set_notebooks(counts["NOTEBOOK"]);
  response->set_shells(counts["SHELL"]);
  response->set_tensorboards(counts["TENSORBOARD"]);
  return {};
}

Status TaskService::GetTask(const Caller&, const v1::GetTaskRequest& request, v1::GetTaskResponse* response) {
  const TaskId id(request.task_id());
  TRY_ASSIGN(const db::TaskFacts facts, db::get_task(context_.pool, id));
  v1::Task* task = response->mutable_task();
  task->set_task_id(id.value);
  if (const auto trial_id = facts.key.as<TrialId>()) {
    TRY_ASSIGN(const db::TrialRow trial, db::get_trial(context_.pool, *trial_id));
    task->set_task_type(v1::TASK_TYPE_TRIAL);
    to_proto(trial.trial.started, task->mutable_start_time());
    if (trial.trial.ended) to_proto(*trial.trial.ended, task->mutable_end_time());
  } else {
    TRY_ASSIGN(const db::CommandRow row, db::get_command(context_.pool, id));
    TRY_ASSIGN(const auto generic, db::find_generic_task(context_.pool, id));
    task->set_task_type(generic ? v1::TASK_TYPE_GENERIC : task_type(row.interactive.kind));
    // A paused task may be resumed when its processes have ended.
    task->set_task_state(row.command.state == core::State::kPaused && row.live
                             ? v1::GENERIC_TASK_STATE_STOPPING_PAUSED
                             : generic_task_state(row.command.state));
    if (generic) task->set_no_pause(generic->no_pause);
    if (generic && !generic->forked_from.empty()) task->set_forked_from(generic->forked_from);
    to_proto(row.command.submitted, task->mutable_start_time());
    if (row.command.ended) to_proto(*row.command.ended, task->mutable_end_time());
  }
  TRY_ASSIGN(const auto allocations, db::list_allocations(context_.pool, facts.key));
  for (const db::AllocationRow& row : allocations) to_proto(row, id, task->add_allocations());
  return {};
}

Status TaskService::GetTaskAcceleratorData(const Caller&, const v1::GetTaskRequest& request,
                                           v1::GetTaskAcceleratorDataResponse* response) {
  const TaskId id(request.task_id());
  TRY_ASSIGN(const db::TaskFacts facts, db::get_task(context_.pool, id));
  auto allocations = std::make_shared<std::vector<db::AllocationRow>>();
  TRY_ASSIGN(*allocations, db::list_allocations(context_.pool, facts.key));
  auto found = std::make_shared<v1::GetTaskAcceleratorDataResponse>();
  TRY(context_.loop.inspect([allocations, found, id](const core::Core& core) {
    for (const db::AllocationRow& row : *allocations) {
      for (const core::AllocationPart& part : row.parts) {
        const auto agent = core.agents().find(part.agent);
        if (agent == core.agents().end()) continue;
        v1::AcceleratorData* data = found->add_accelerator_data();
        data->set_task_id(id.value);
        data->set_allocation_id(row.id.value);
        data->set_container_id(row.id.value);
        data->set_node_name(part.agent.value);
        data->set_resource_pool(row.pool);
        for (const int slot : part.slots) {
          if (static_cast<std::size_t>(slot) >= agent->second.slots.size()) continue;
          const core::Device& device = agent->second.slots[static_cast<std::size_t>(slot)];
          data->set_accelerator_type(device.brand);
          data->add_accelerator_uuids(device.uuid);
        }
      }
    }
  }));
  *response = std::move(*found);
  return {};
}

Status TaskService::GetTaskContextDirectory(const Caller& caller,
                                            const v1::GetTaskContextDirectoryRequest& request,
                                            v1::GetTaskContextDirectoryResponse* response) {
  // Checked before the lookup: a caller without a valid token must not learn which tasks exist.
  TRY(admit(context_, caller, {}));
  // The token must belong to this trial, not only to any live one.
  TRY_ASSIGN(const TrialId trial_id, db::trial_of_task(context_.pool, TaskId(request.task_id())));
  TRY(admit(context_, caller, {.trial = trial_id}));
  TRY_ASSIGN(const db::TrialRow trial, db::get_trial(context_.pool, trial_id));
  auto bytes = db::get_code_archive(context_.pool, trial.trial.experiment);
  // An experiment without a code archive returns an empty archive.
  if (!bytes && bytes.error().code == Code::kNotFound) return {};
  if (!bytes) return tl::unexpected(bytes.error());
  response->set_b64_tgz(to_base64(*bytes));
  return {};
}

Status TaskService::PostTaskLogs(const Caller& caller, const v1::PostTaskLogsRequest& request,
                                 v1::PostTaskLogsResponse*) {
  if (request.logs_size() > kMaxTaskLogLines)
    return fail(Code::kInvalidArgument,
                "logs: at most " + std::to_string(kMaxTaskLogLines) + " lines in one call");
  // Authenticates the caller even if the request has no lines.
  TRY(find_reporter(context_, caller, {}));
  std::map<std::string, std::vector<db::SentLine>> by_task;
  std::map<std::string, Reporter> reporters;
  for (const v1::TaskLog& line : request.logs()) {
    // Clients outside the cluster have no allocation id.
    // Lines of one call usually share an allocation, which is looked up once.
    const std::string& key = line.allocation_id().empty() ? line.task_id() : line.allocation_id();
    auto known = reporters.find(key);
    if (known == reporters.end()) {
      Named named;
      if (line.allocation_id().empty()) named.task = TaskId(line.task_id());
      if (!line.allocation_id().empty()) named.allocation = AllocationId(line.allocation_id());
      TRY_ASSIGN(Reporter reporter, find_reporter(context_, caller, named));
      known = reporters.emplace(key, std::move(reporter)).first;
    }
    const Reporter& reporter = known->second;
    // A token of one task must not write to the log of another.
    if (line.task_id() != reporter.task.value)
      return fail(Code::kInvalidArgument, "logs: task_id is not that of the allocation");
    TRY(context_.quotas->check(core::QuotaResource::kLogBytes, reporter.owner));
    // Long text is cut rather than refused, as for lines from agents.
    by_task[line.task_id()].push_back(
        {.allocation = reporter.allocation,
         .agent = reporter.parts.empty() ? AgentId() : reporter.parts.front().agent,
         .rank = line.rank_id(),
         .time = line.has_timestamp() ? from_proto(line.timestamp()) : wall_now(),
         .level = log_level_name(line.level()),
         .stdtype = line.stdtype() == "stderr" ? "stderr" : "stdout",
         .source = "task",
         .text = without_line_end(line.log().substr(0, kMaxTaskLogLine))});
  }
  for (const auto& [task, lines] : by_task) {
    TRY(db::append_lines(context_.pool, TaskId(task), lines));
    context_.hub.publish(
        {.kind = loop::Change::Kind::kLogs, .experiment = {}, .trial = {}, .task = TaskId(task), .name = ""});
  }
  return {};
}

}  // namespace det::api
