// `det task`: lists what runs on the agents, and prints its log.
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command.h"
#include "cli/commands/not_offered.h"
#include "cli/output/logs.h"
#include "cli/output/print.h"
#include "cli/tasks/port_forward.h"
#include "common/base/text.h"
#include "det/v1/cluster.methods.h"
#include "det/v1/task.methods.h"

namespace det::cli {
namespace {

/// An allocation with its parts on all agents.
struct Running {
  std::string task, name, pool;
  std::set<std::string> agents;
  int slots = 0;
};

/// Groups the containers of all agents by allocation: a distributed task has one container per agent.
std::map<std::string, Running> running_tasks(const v1::GetAgentsResponse& response) {
  std::map<std::string, Running> tasks;
  for (const v1::Agent& agent : response.agents()) {
    for (const auto& [id, container] : agent.containers()) {
      Running& task = tasks[container.id().empty() ? id : container.id()];
      task.task = container.task_id();
      task.name = container.trial_id() > 0 ? "Trial " + std::to_string(container.trial_id()) : "";
      task.pool = join({agent.resource_pools().begin(), agent.resource_pools().end()}, ", ");
      task.agents.insert(agent.id());
      task.slots += container.devices_size();
    }
  }
  return tasks;
}

Status list_tasks(Client& client, const ListOutput& output) {
  TRY_ASSIGN(const auto response, client.call(v1::ClusterService::GetAgents, v1::GetAgentsRequest()));
  Table table{
      {"Task ID", "Allocation ID", "Name", "Slots Needed", "Registered Time", "Agent", "Resource Pool"}, {}};
  Json list = Json::array();
  for (const auto& [allocation, running] : running_tasks(response)) {
    v1::GetTaskRequest request;
    request.set_task_id(running.task);
    // The task may have ended since the agents were listed. The row then shows "N/A".
    const auto task = client.call(v1::TaskService::GetTask, request);
    const std::string since =
        task ? time_text(task->task().start_time(), task->task().has_start_time()) : std::string("N/A");
    const std::vector<std::string> agents(running.agents.begin(), running.agents.end());
    table.rows.push_back({running.task, allocation, running.name, std::to_string(running.slots), since,
                          join(agents, ", "), running.pool});
    list.push_back({{"taskId", running.task},
                    {"allocationId", allocation},
                    {"name", running.name},
                    {"slotsNeeded", running.slots},
                    {"registeredTime", since},
                    {"agents", agents},
                    {"resourcePool", running.pool}});
  }
  return output.print(table, [&]() -> Result<Json> { return list; });
}

struct TaskLogOptions {
  std::string task;
  LogFlags lines;
  void declare(CLI::App& app) {
    app.add_option("TASK", task, "Task id, as shown by `det task list`.")->required();
    lines.declare(app);
    app.add_option("--allocation-id", lines.container_ids, "Only lines of this allocation; repeatable.")
        ->allow_extra_args(false)
        ->take_all()
        ->excludes(app.get_option("--container-id"));
  }
};

Status print_task_log(Client& client, const TaskLogOptions& options) {
  return print_task_logs(client, options.task, options.lines);
}

}  // namespace

Command task_command() {
  return {{"task"},
          "Show current tasks.",
          {},
          {{{"list", "ls"}, "List current tasks.", action(list_tasks)},
           {{"logs"}, "Print the log of a task.", action(print_task_log)},
           port_forward_command(),
           not_offered({"cleanup-logs"}, kLogRetention)}};
}

}  // namespace det::cli
