// `det pilot`: jobs of Slurm and Kubernetes that run agents.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "det/v1/pilot.methods.h"

namespace det::cli {
namespace {

/// Lists pilots. Problems of pools go to stderr, so that the output stays a table.
Status list_pilots(Client& client, const ListOutput& output) {
  TRY_ASSIGN(const auto response, client.call(v1::PilotService::GetPilots, v1::GetPilotsRequest()));
  Table table{{"Name", "Resource Pool", "State", "Job", "Nodes", "Agents", "Allocations", "Submitted", "Ends",
               "Reason"},
              {},
              {4, 5, 6}};
  for (const v1::Pilot& each : response.pilots()) {
    table.rows.push_back({each.name(), each.resource_pool(), each.state(), each.job(),
                          std::to_string(each.nodes()), std::to_string(each.agents()),
                          std::to_string(each.allocations()),
                          time_text(each.submitted_time(), each.has_submitted_time()),
                          time_text(each.end_time(), each.has_end_time()), each.reason()});
  }
  TRY(output.print(table, [&] { return list_to_json(response.pilots()); }));
  for (const v1::PilotPool& pool : response.pools()) {
    if (!pool.problem().empty()) std::cerr << printable(pool.problem()) << '\n';
  }
  if (response.pools().empty())
    std::cerr << "No resource pool has a provider: agents are started by administrators.\n";
  return {};
}

}  // namespace

Command pilot_command() {
  return {{"pilot", "pilots"},
          "List the jobs of Slurm or Kubernetes that run agents.",
          {},
          {{{"list", "ls"}, "List pilots and the reasons for which they wait.", action(list_pilots)}}};
}

}  // namespace det::cli
