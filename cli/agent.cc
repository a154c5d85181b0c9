// Owns `det agent`.
#include "base/text.h"
#include "cli/command.h"
#include "cli/print.h"
#include "det/v1/cluster.grpc.pb.h"

namespace det::cli {
namespace {

Action declare_list_agents(CLI::App& app) {
  auto output = std::make_shared<Output>();
  output->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response,
               client->call(&v1::ClusterService::Stub::GetAgents, v1::GetAgentsRequest()));
    Table table{{"Agent ID", "Version", "Registered Time", "Slots", "Containers", "Resource Pool", "Enabled",
                 "Draining", "Connected", "Addresses"},
                {}};
    for (const v1::Agent& each : response.agents()) {
      table.rows.push_back(
          {each.id(), each.version(), time_text(each.registered_time(), each.has_registered_time()),
           std::to_string(each.slots().size()), std::to_string(each.containers().size()),
           join({each.resource_pools().begin(), each.resource_pools().end()}, ", "),
           yes_or_no(each.enabled()), yes_or_no(each.draining()), yes_or_no(each.connected()),
           join({each.addresses().begin(), each.addresses().end()}, ", ")});
    }
    TRY(output->print(table, [&] { return list_to_json(response.agents()); }));
    return 0;
  };
}

}  // namespace

Command agent_command() {
  return {{"agent", "a"},
          "Look at the cluster's agents.",
          {},
          {{{"list", "ls"}, "List agents.", declare_list_agents}}};
}

}  // namespace det::cli
