// `det slot`: lists slots and takes them out of service.
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/cluster.grpc.pb.h"

namespace det::cli {
namespace {

/// "cuda", "cpu", …
std::string device_type(v1::Device::Type type) {
  const std::string name = v1::Device::Type_Name(type);
  return name.starts_with("TYPE_") ? to_lower(name.substr(5)) : name;
}

/// Orders slots by number. The ids are strings on the wire: comparing the length first sorts "10" after "9".
std::map<std::pair<std::size_t, std::string>, const v1::Slot*> sorted(const v1::Agent& agent) {
  std::map<std::pair<std::size_t, std::string>, const v1::Slot*> slots;
  for (const auto& [id, slot] : agent.slots()) slots[{id.size(), id}] = &slot;
  return slots;
}

/// The slot's JSON with the id and the pools of its agent.
Result<Json> to_json_with_agent(const v1::Agent& agent, const v1::Slot& slot) {
  TRY_ASSIGN(const Json fields, to_json(slot));
  Json value = {{"agentId", agent.id()}, {"resourcePools", Json::array()}};
  for (const std::string& pool : agent.resource_pools()) value["resourcePools"].push_back(pool);
  value.update(fields);
  return value;
}

Action declare_list_slots(CLI::App& app) {
  auto output = std::make_shared<Output>();
  output->declare_list(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response,
               client->call(&v1::ClusterService::Stub::GetAgents, v1::GetAgentsRequest()));
    Table table{{"Agent ID", "Resource Pool", "Slot ID", "Enabled", "Draining", "Allocation ID", "Task Name",
                 "Type", "Device"},
                {},
                {0, 2}};
    Json list = Json::array();
    for (const v1::Agent& agent : response.agents()) {
      const std::string pools = join({agent.resource_pools().begin(), agent.resource_pools().end()}, ", ");
      for (const auto& [order, slot] : sorted(agent)) {
        const v1::Container& holder = slot->container();
        const bool free = !slot->has_container() || holder.id().empty();
        table.rows.push_back({agent.id(), pools, order.second, yes_or_no(slot->enabled()),
                              yes_or_no(slot->draining()), free ? "FREE" : holder.id(),
                              free                    ? ""
                              : holder.trial_id() > 0 ? "Trial " + std::to_string(holder.trial_id())
                                                      : holder.task_id(),
                              device_type(slot->device().type()), slot->device().brand()});
        TRY_ASSIGN(Json value, to_json_with_agent(agent, *slot));
        list.push_back(std::move(value));
      }
    }
    TRY(output->print(table, [&]() -> Result<Json> { return list; }));
    return 0;
  };
}

struct SlotFlags {
  std::string agent, slot;
  bool drain = false;
  void declare(CLI::App& app) {
    app.add_option("AGENT", agent, "The agent's id.")->required();
    app.add_option("SLOT", slot, "The slot's number on it.")->required();
  }
};

/// Disables a slot. With --drain its container may finish, else it is preempted.
Action declare_slot_disable(CLI::App& app) {
  auto flags = std::make_shared<SlotFlags>();
  flags->declare(app);
  app.add_flag("--drain", flags->drain, "Let finish what runs there; else it is pre-empted and waits again.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::DisableSlotRequest request;
    request.set_agent_id(flags->agent);
    request.set_slot_id(flags->slot);
    request.set_drain(flags->drain);
    TRY(client->call(&v1::ClusterService::Stub::DisableSlot, request));
    std::cout << "Disabled slot " << printable(flags->slot) << " of agent " << printable(flags->agent)
              << '\n';
    return 0;
  };
}

Action declare_slot_enable(CLI::App& app) {
  auto flags = std::make_shared<SlotFlags>();
  flags->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::EnableSlotRequest request;
    request.set_agent_id(flags->agent);
    request.set_slot_id(flags->slot);
    TRY(client->call(&v1::ClusterService::Stub::EnableSlot, request));
    std::cout << "Enabled slot " << printable(flags->slot) << " of agent " << printable(flags->agent) << '\n';
    return 0;
  };
}

}  // namespace

Command slot_command() {
  return {{"slot", "s"},
          "Look at the agents' slots, and take them out of service.",
          {},
          {{{"list", "ls"}, "List slots.", declare_list_slots},
           {{"disable"}, "Give a slot to nobody, until it is enabled.", declare_slot_disable},
           {{"enable"}, "Put a slot back into service.", declare_slot_enable}}};
}

}  // namespace det::cli
