// `det agent`: lists agents, takes them out of service and revokes their certificates.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/cluster.grpc.pb.h"
#include "det/v1/join.grpc.pb.h"

namespace det::cli {
namespace {

Action declare_list_agents(CLI::App& app) {
  auto output = std::make_shared<Output>();
  output->declare_list(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response,
               client->call(&v1::ClusterService::Stub::GetAgents, v1::GetAgentsRequest()));
    Table table{{"Agent ID", "Version", "Registered Time", "Slots", "Containers", "Resource Pool", "Enabled",
                 "Draining", "Connected", "Addresses"},
                {}};
    for (const v1::Agent& each : response.agents()) {
      table.rows.push_back(
          {each.id(), each.release(), time_text(each.registered_time(), each.has_registered_time()),
           std::to_string(each.slots().size()), std::to_string(each.containers().size()),
           join({each.resource_pools().begin(), each.resource_pools().end()}, ", "),
           yes_or_no(each.enabled()), yes_or_no(each.draining()), yes_or_no(each.connected()),
           join({each.addresses().begin(), each.addresses().end()}, ", ")});
    }
    TRY(output->print(table, [&] { return list_to_json(response.agents()); }));
    return 0;
  };
}

/// Flags of `enable` and `disable`: one agent or all of them.
struct ServiceFlags {
  std::string agent;
  bool all = false, drain = false;
  Output output;

  void declare(CLI::App& app) {
    CLI::Option* one = app.add_option("AGENT", agent, "The agent's id.");
    app.add_flag("-a,--all", all, "Every agent there is.")->excludes(one);
    output.declare(app);
  }
};

/// Returns the ids of the selected agents. Errors: kInvalidArgument (neither an agent nor --all).
Result<std::vector<std::string>> agents_of(Client& client, const ServiceFlags& flags) {
  if (!flags.all && flags.agent.empty()) return fail(Code::kInvalidArgument, "name an agent, or say --all");
  if (!flags.all) return std::vector<std::string>{flags.agent};
  TRY_ASSIGN(const auto response, client.call(&v1::ClusterService::Stub::GetAgents, v1::GetAgentsRequest()));
  std::vector<std::string> ids;
  for (const v1::Agent& each : response.agents()) ids.push_back(each.id());
  return ids;
}

/// Lists the containers that still run on the agents.
Table containers_table(const std::vector<v1::Agent>& agents) {
  Table table{{"Agent ID", "Allocation ID", "Task ID", "Slots"}, {}, {1}};
  for (const v1::Agent& agent : agents) {
    for (const auto& [id, container] : agent.containers()) {
      table.rows.push_back({agent.id(), container.id().empty() ? id : container.id(), container.task_id(),
                            std::to_string(container.devices().size())});
    }
  }
  return table;
}

Action declare_agent_disable(CLI::App& app) {
  auto flags = std::make_shared<ServiceFlags>();
  flags->declare(app);
  app.add_flag("--drain", flags->drain, "Let finish what runs there; else it is pre-empted and waits again.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto ids, agents_of(*client, *flags));
    // Lines for people would break the JSON or CSV of the same command.
    const bool for_people = !flags->output.structured() && !flags->output.csv;
    std::vector<v1::Agent> agents;
    for (const std::string& id : ids) {
      v1::DisableAgentRequest request;
      request.set_agent_id(id);
      request.set_drain(flags->drain);
      TRY_ASSIGN(const auto response, client->call(&v1::ClusterService::Stub::DisableAgent, request));
      agents.push_back(response.agent());
      if (for_people)
        std::cout << (flags->drain ? "Draining agent " : "Disabled agent ") << printable(id) << '\n';
    }
    const Table running = containers_table(agents);
    // Without --drain the containers are preempted, so the list would be outdated when it is printed.
    if (for_people && (!flags->drain || running.rows.empty())) return 0;
    if (for_people) std::cout << "Still running there:\n";
    TRY(flags->output.print(running, [&] { return list_to_json(agents); }));
    return 0;
  };
}

Action declare_agent_enable(CLI::App& app) {
  auto flags = std::make_shared<ServiceFlags>();
  flags->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto ids, agents_of(*client, *flags));
    std::vector<v1::Agent> agents;
    for (const std::string& id : ids) {
      v1::EnableAgentRequest request;
      request.set_agent_id(id);
      TRY_ASSIGN(const auto response, client->call(&v1::ClusterService::Stub::EnableAgent, request));
      agents.push_back(response.agent());
    }
    if (flags->output.structured() || flags->output.csv) {
      TRY(flags->output.print(containers_table(agents), [&] { return list_to_json(agents); }));
    } else {
      for (const std::string& id : ids) std::cout << "Enabled agent " << printable(id) << '\n';
    }
    return 0;
  };
}

/// Ends the trust in an agent's certificates. The agent needs a new join token to return.
Action declare_agent_revoke(CLI::App& app) {
  auto agent = std::make_shared<std::string>();
  app.add_option("AGENT", *agent, "The agent's id.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::RevokeAgentRequest request;
    request.set_agent_id(*agent);
    TRY(client->call(&v1::JoinService::Stub::RevokeAgent, request));
    std::cout << "Revoked the certificates of agent " << printable(*agent) << '\n';
    return 0;
  };
}

}  // namespace

Command agent_command() {
  return {{"agent", "a"},
          "Look at the cluster's agents, and take them out of service.",
          {},
          {{{"list", "ls"}, "List agents.", declare_list_agents},
           {{"disable"}, "Give an agent nothing new, until it is enabled.", declare_agent_disable},
           {{"enable"}, "Put an agent back into service.", declare_agent_enable},
           {{"revoke"},
            "Put an agent out of the cluster until it joins with a new token.",
            declare_agent_revoke}}};
}

}  // namespace det::cli
