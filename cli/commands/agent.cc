// `det agent` and `det slot`: list, enable and disable; revoke the certificates of an agent.
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/cluster.methods.h"
#include "det/v1/join.methods.h"

namespace det::cli {
namespace {

Result<v1::GetAgentsResponse> get_agents(Client& client) {
  return client.call(v1::ClusterService::GetAgents, v1::GetAgentsRequest());
}

std::string pools_text(const v1::Agent& agent) {
  return join({agent.resource_pools().begin(), agent.resource_pools().end()}, ", ");
}

/// Orders slots by number. The ids are strings on the wire: comparing the length first sorts "10" after "9".
std::map<std::pair<std::size_t, std::string>, const v1::Slot*> sorted_slots(const v1::Agent& agent) {
  std::map<std::pair<std::size_t, std::string>, const v1::Slot*> slots;
  for (const auto& [id, slot] : agent.slots()) slots[{id.size(), id}] = &slot;
  return slots;
}

/// Why the agent, or slots of it, take no work.
std::string problems_text(const v1::Agent& agent) {
  std::vector<std::string> problems;
  if (!agent.problem().empty()) problems.push_back(agent.problem());
  for (const auto& [order, slot] : sorted_slots(agent))
    if (!slot->problem().empty()) problems.push_back("slot " + slot->id() + ": " + slot->problem());
  return join(problems, "; ");
}

Status list_agents(Client& client, const ListOutput& output) {
  TRY_ASSIGN(const auto response, get_agents(client));
  Table table{{"Agent ID", "Version", "Registered Time", "Slots", "Containers", "Resource Pool", "Enabled",
               "Draining", "Connected", "Sandbox", "Problem", "Addresses"},
              {},
              {0},
              {"Version", "Draining", "Sandbox", "Addresses"}};
  for (const v1::Agent& each : response.agents()) {
    table.rows.push_back(
        {each.id(), each.release(), time_text(each.registered_time(), each.has_registered_time()),
         std::to_string(each.slots().size()), std::to_string(each.containers().size()), pools_text(each),
         yes_or_no(each.enabled()), yes_or_no(each.draining()), yes_or_no(each.connected()), each.sandbox(),
         problems_text(each), join({each.addresses().begin(), each.addresses().end()}, ", ")});
  }
  return output.print(table, [&] { return list_to_json(response.agents()); });
}

/// One agent, or all of them.
struct AgentServiceOptions {
  std::string agent;
  bool all = false;
  Output output;

  void declare(CLI::App& app) {
    CLI::Option* one = app.add_option("AGENT", agent, "Agent id.");
    app.add_flag("-a,--all", all, "Select all agents.")->excludes(one);
    output.declare(app);
  }
};

const char* const kDrainHelp = "Let current allocations finish; the default preempts and requeues them.";

struct AgentDisableOptions : AgentServiceOptions {
  bool drain = false;
  void declare(CLI::App& app) {
    AgentServiceOptions::declare(app);
    app.add_flag("--drain", drain, kDrainHelp);
  }
};

/// Returns the ids of the selected agents. Errors: kInvalidArgument (neither an agent nor --all).
Result<std::vector<std::string>> selected_agents(Client& client, const AgentServiceOptions& options) {
  if (!options.all && options.agent.empty())
    return fail(Code::kInvalidArgument, "no agent selected; give an agent id or --all");
  if (!options.all) return std::vector<std::string>{options.agent};
  TRY_ASSIGN(const auto response, get_agents(client));
  std::vector<std::string> ids;
  for (const v1::Agent& each : response.agents()) ids.push_back(each.id());
  return ids;
}

/// Lists the allocations on the agents.
Table allocations_table(const std::vector<v1::Agent>& agents) {
  Table table{{"Agent ID", "Allocation ID", "Task ID", "Slots"}, {}, {1}};
  for (const v1::Agent& agent : agents) {
    for (const auto& [id, container] : agent.containers()) {
      table.rows.push_back({agent.id(), container.id().empty() ? id : container.id(), container.task_id(),
                            std::to_string(container.devices().size())});
    }
  }
  return table;
}

Status disable_agents(Client& client, const AgentDisableOptions& options) {
  TRY_ASSIGN(const auto ids, selected_agents(client, options));
  const bool as_text = !options.output.for_programs();
  std::vector<v1::Agent> agents;
  for (const std::string& id : ids) {
    v1::DisableAgentRequest request;
    request.set_agent_id(id);
    request.set_drain(options.drain);
    TRY_ASSIGN(const auto response, client.call(v1::ClusterService::DisableAgent, request));
    agents.push_back(response.agent());
    if (as_text)
      std::cout << (options.drain ? "Draining agent " : "Disabled agent ") << printable(id) << '\n';
  }
  const Table current = allocations_table(agents);
  // Without --drain the allocations are preempted, so the list would be outdated when it is printed.
  if (as_text && (!options.drain || current.rows.empty())) return {};
  if (as_text) std::cout << "Current allocations:\n";
  return options.output.print(current, [&] { return list_to_json(agents); });
}

Status enable_agents(Client& client, const AgentServiceOptions& options) {
  TRY_ASSIGN(const auto ids, selected_agents(client, options));
  std::vector<v1::Agent> agents;
  for (const std::string& id : ids) {
    v1::EnableAgentRequest request;
    request.set_agent_id(id);
    TRY_ASSIGN(const auto response, client.call(v1::ClusterService::EnableAgent, request));
    agents.push_back(response.agent());
    if (!options.output.for_programs()) std::cout << "Enabled agent " << printable(id) << '\n';
  }
  if (!options.output.for_programs()) return {};
  return options.output.print(allocations_table(agents), [&] { return list_to_json(agents); });
}

/// Ends the trust in an agent's certificates. The agent needs a new join token to return.
Status revoke_agent(Client& client, const Argument& agent) {
  v1::RevokeAgentRequest request;
  request.set_agent_id(agent.value);
  TRY(client.call(v1::JoinService::RevokeAgent, request));
  std::cout << "Revoked the certificates of agent " << printable(agent.value) << '\n';
  return {};
}

/// "cuda", "cpu", …
std::string device_type(v1::Device::Type type) {
  const std::string name = v1::Device::Type_Name(type);
  return name.starts_with("TYPE_") ? to_lower(name.substr(5)) : name;
}

/// The slot's JSON with the id and the pools of its agent.
Result<Json> slot_to_json(const v1::Agent& agent, const v1::Slot& slot) {
  TRY_ASSIGN(const Json fields, to_json(slot));
  Json value = {{"agentId", agent.id()}, {"resourcePools", Json::array()}};
  for (const std::string& pool : agent.resource_pools()) value["resourcePools"].push_back(pool);
  value.update(fields);
  return value;
}

Status list_slots(Client& client, const ListOutput& output) {
  TRY_ASSIGN(const auto response, get_agents(client));
  Table table{{"Agent ID", "Resource Pool", "Slot ID", "Enabled", "Draining", "Allocation ID", "Task Name",
               "Type", "Device", "Problem"},
              {},
              {0, 2}};
  Json list = Json::array();
  for (const v1::Agent& agent : response.agents()) {
    for (const auto& [order, slot] : sorted_slots(agent)) {
      const v1::Container& holder = slot->container();
      const bool free = !slot->has_container() || holder.id().empty();
      table.rows.push_back({agent.id(), pools_text(agent), order.second, yes_or_no(slot->enabled()),
                            yes_or_no(slot->draining()), free ? "FREE" : holder.id(),
                            free                    ? ""
                            : holder.trial_id() > 0 ? "Trial " + std::to_string(holder.trial_id())
                                                    : holder.task_id(),
                            device_type(slot->device().type()), slot->device().brand(), slot->problem()});
      TRY_ASSIGN(Json value, slot_to_json(agent, *slot));
      list.push_back(std::move(value));
    }
  }
  return output.print(table, [&]() -> Result<Json> { return list; });
}

struct SlotOptions {
  std::string agent, slot;
  void declare(CLI::App& app) {
    app.add_option("AGENT", agent, "Agent id.")->required();
    app.add_option("SLOT", slot, "Slot number on the agent.")->required();
  }
};

struct SlotDisableOptions : SlotOptions {
  bool drain = false;
  void declare(CLI::App& app) {
    SlotOptions::declare(app);
    app.add_flag("--drain", drain, kDrainHelp);
  }
};

void print_slot(const char* done, const SlotOptions& options) {
  std::cout << done << " slot " << printable(options.slot) << " of agent " << printable(options.agent)
            << '\n';
}

Status disable_slot(Client& client, const SlotDisableOptions& options) {
  v1::DisableSlotRequest request;
  request.set_agent_id(options.agent);
  request.set_slot_id(options.slot);
  request.set_drain(options.drain);
  TRY(client.call(v1::ClusterService::DisableSlot, request));
  print_slot("Disabled", options);
  return {};
}

Status enable_slot(Client& client, const SlotOptions& options) {
  v1::EnableSlotRequest request;
  request.set_agent_id(options.agent);
  request.set_slot_id(options.slot);
  TRY_ASSIGN(const auto response, client.call(v1::ClusterService::EnableSlot, request));
  print_slot("Enabled", options);
  const std::string& problem = response.slot().problem();
  if (!problem.empty()) std::cout << "It takes no work yet: " << printable(problem) << '\n';
  if (!response.slot().enabled())
    std::cout << "It takes no work yet: agent " << printable(options.agent) << " is disabled\n";
  return {};
}

}  // namespace

Command agent_command() {
  return {{"agent", "a"},
          "Manage agents.",
          {},
          {{{"list", "ls"}, "List agents.", action(list_agents)},
           {{"disable"}, "Stop scheduling on an agent.", action(disable_agents)},
           {{"enable"}, "Resume scheduling on an agent.", action(enable_agents)},
           {{"revoke"},
            "Revoke an agent's certificates. The agent needs a new join token to return.",
            action(revoke_agent, {"AGENT", "Agent id."})}}};
}

Command slot_command() {
  return {{"slot", "s"},
          "Manage slots.",
          {},
          {{{"list", "ls"}, "List slots.", action(list_slots)},
           {{"disable"}, "Stop scheduling on a slot.", action(disable_slot)},
           {{"enable"}, "Resume scheduling on a slot.", action(enable_slot)}}};
}

}  // namespace det::cli
