// Handlers of ClusterService.
#include "master/api/cluster/cluster.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "common/base/text.h"
#include "det/v1/cluster.methods.h"
#include "master/api/cluster/master.h"
#include "master/api/convert/convert.h"
#include "master/api/page.h"

namespace det::api {

ClusterService::ClusterService(const Context& context) : Service(context, v1::ClusterService::full_name) {
  unary(v1::ClusterService::GetMaster, &ClusterService::GetMaster);
  unary(v1::ClusterService::GetAgents, &ClusterService::GetAgents);
  unary(v1::ClusterService::GetAgent, &ClusterService::GetAgent);
  unary(v1::ClusterService::GetSlots, &ClusterService::GetSlots);
  unary(v1::ClusterService::GetSlot, &ClusterService::GetSlot);
  unary(v1::ClusterService::GetResourcePools, &ClusterService::GetResourcePools);
  unary(v1::ClusterService::DisableAgent, &ClusterService::DisableAgent);
  unary(v1::ClusterService::EnableAgent, &ClusterService::EnableAgent);
  unary(v1::ClusterService::DisableSlot, &ClusterService::DisableSlot);
  unary(v1::ClusterService::EnableSlot, &ClusterService::EnableSlot);
}

Status ClusterService::GetMaster(const Caller&, const v1::GetMasterRequest&,
                                 v1::GetMasterResponse* response) {
  const Settings& settings = context_.settings;
  response->set_version(kDeterminedVersion);
  response->set_release(settings.version);
  response->set_master_id(settings.master_id);
  response->set_cluster_id(settings.cluster_id);
  response->set_cluster_name(settings.cluster_name);
  // Feature flags for clients of Determined AI. Both features are always present.
  response->set_rbac_enabled(true);
  response->set_user_management_enabled(true);
  // Clients ask for the version also while the database is away.
  const auto message = db::get_cluster_message(context_.pool, true);
  if (message && *message) to_proto(**message, response->mutable_cluster_message());
  return {};
}

namespace {

void hide(v1::Container& container) {
  container.clear_id();
  container.clear_task_id();
  container.clear_trial_id();
}

/// Clears the ids of containers that the caller may not see.
Status hide_invisible(const Caller& caller, db::Pool& pool, std::vector<v1::Agent>& agents) {
  // The caller may see all workspaces.
  if (!caller.grants.visible()) return {};
  std::vector<std::string> tasks;
  for (const v1::Agent& agent : agents)
    // One query for all agents.
    for (const auto& [id, container] : agent.containers()) tasks.push_back(container.task_id());
  TRY_ASSIGN(const auto seen, may_see(caller, db::Placed::kTask, tasks, pool));
  std::set<std::string> visible;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (seen[i]) visible.insert(tasks[i]);
  for (v1::Agent& agent : agents) {
    for (auto& [id, slot] : *agent.mutable_slots())
      if (slot.has_container() && !visible.contains(slot.container().task_id()))
        hide(*slot.mutable_container());
    google::protobuf::Map<std::string, v1::Container> shown;
    int hidden = 0;
    for (auto& [id, container] : *agent.mutable_containers()) {
      const bool shows = visible.contains(container.task_id());
      if (!shows) hide(container);
      // The map is keyed by allocation id, which must be hidden as well.
      shown[shows ? id : "hidden " + std::to_string(++hidden)] = std::move(container);
    }
    agent.mutable_containers()->swap(shown);
  }
  return {};
}

/// Copies of the core's agents. Conversion happens on the caller's thread, to keep the core's thread short.
struct PoolView {
  std::vector<core::Agent> agents;
  std::map<AgentId, core::AgentSettings> settings;
  std::vector<std::pair<AgentId, RunningPart>> running;
};

void look(const core::Core& core, const std::optional<AgentId>& only, PoolView& seen) {
  const auto wanted = [&](const AgentId& id) { return !only || id == *only; };
  for (const auto& [id, agent] : core.agents())
    if (wanted(id)) seen.agents.push_back(agent);
  for (const auto& [id, settings] : core.agent_settings())
    if (wanted(id)) seen.settings.emplace(id, settings);
  for (const auto& [id, allocation] : core.allocations()) {
    for (const core::AllocationPart& part : allocation.parts) {
      if (wanted(part.agent) && part.state != core::AllocationState::kTerminated)
        seen.running.push_back({part.agent, {id, allocation.task, allocation.state, part.slots}});
    }
  }
}

}  // namespace

Result<std::vector<v1::Agent>> ClusterService::agents(const Caller& caller,
                                                      const std::optional<AgentId>& only) const {
  // Shared: after a timeout the core may still write to it.
  auto seen = std::make_shared<PoolView>();
  // Reads from the core see durable state only.
  TRY(context_.loop.inspect([seen, only](const core::Core& core) { look(core, only, *seen); }));
  std::map<AgentId, std::vector<RunningPart>> running;
  for (auto& [agent, part] : seen->running) running[agent].push_back(std::move(part));
  std::vector<v1::Agent> list;
  const auto readings = context_.readings->get();
  for (const core::Agent& agent : seen->agents) {
    v1::Agent& out = list.emplace_back();
    to_proto(agent, seen->settings[agent.id], running[agent.id], &out);
    for (auto& [id, slot] : *out.mutable_slots()) {
      const auto number = static_cast<std::size_t>(slot.device().id());
      if (const v1::DeviceReading* reading = find_reading(*readings, agent.id, number))
        *slot.mutable_reading() = *reading;
    }
  }
  TRY(hide_invisible(caller, context_.pool, list));
  return list;
}

Result<v1::Agent> ClusterService::agent(const Caller& caller, const std::string& id) const {
  TRY_ASSIGN(std::vector<v1::Agent> found, agents(caller, AgentId(id)));
  if (found.empty()) return fail(Code::kNotFound, "agent " + make_utf8(id) + " not found");
  return std::move(found.front());
}

Status ClusterService::GetAgents(const Caller& caller, const v1::GetAgentsRequest& request,
                                 v1::GetAgentsResponse* response) {
  TRY_ASSIGN(std::vector<v1::Agent> all, agents(caller));
  if (request.sort_by() == v1::GetAgentsRequest::SORT_BY_TIME) {
    std::stable_sort(all.begin(), all.end(), [](const v1::Agent& a, const v1::Agent& b) {
      return from_proto(a.registered_time()).micros < from_proto(b.registered_time()).micros;
    });
  }
  // The default order, by id, is that of the core's map.
  if (request.order_by() == v1::ORDER_BY_DESC) std::reverse(all.begin(), all.end());
  for (v1::Agent& agent : page_of(std::move(all), request, response->mutable_pagination())) {
    if (request.exclude_slots()) agent.clear_slots();
    if (request.exclude_containers()) agent.clear_containers();
    *response->add_agents() = std::move(agent);
  }
  return {};
}

Status ClusterService::GetAgent(const Caller& caller, const v1::GetAgentRequest& request,
                                v1::GetAgentResponse* response) {
  TRY_ASSIGN(*response->mutable_agent(), agent(caller, request.agent_id()));
  return {};
}

Status ClusterService::GetSlots(const Caller& caller, const v1::GetSlotsRequest& request,
                                v1::GetSlotsResponse* response) {
  TRY_ASSIGN(v1::Agent found, agent(caller, request.agent_id()));
  for (auto& [id, slot] : *found.mutable_slots()) *response->add_slots() = std::move(slot);
  std::sort(response->mutable_slots()->begin(), response->mutable_slots()->end(),
            [](const v1::Slot& a, const v1::Slot& b) { return a.device().id() < b.device().id(); });
  return {};
}

Status ClusterService::GetSlot(const Caller& caller, const v1::GetSlotRequest& request,
                               v1::GetSlotResponse* response) {
  TRY_ASSIGN(*response->mutable_slot(), slot(caller, request.agent_id(), request.slot_id()));
  return {};
}

Status ClusterService::set_service(const std::string& agent, const std::string& slot, bool enabled,
                                   bool drain) const {
  core::SetService input{.agent = AgentId(agent), .enabled = enabled, .drain = drain};
  if (!slot.empty()) {
    // from_chars accepts neither spaces nor a suffix, unlike stoi.
    int number = 0;
    const char* end = slot.data() + slot.size();
    const auto read = std::from_chars(slot.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end) {
      return fail(Code::kNotFound, "agent " + make_utf8(agent) + " has no slot " + make_utf8(slot));
    }
    input.slot = number;
  }
  TRY(context_.loop.ask(input));
  return {};
}

Result<v1::Slot> ClusterService::slot(const Caller& caller, const std::string& agent_id,
                                      const std::string& id) const {
  TRY_ASSIGN(v1::Agent found, agent(caller, agent_id));
  auto it = found.slots().find(id);
  if (it == found.slots().end())
    return fail(Code::kNotFound, "agent " + make_utf8(agent_id) + " has no slot " + make_utf8(id));
  return it->second;
}

Status ClusterService::DisableAgent(const Caller& caller, const v1::DisableAgentRequest& request,
                                    v1::DisableAgentResponse* response) {
  TRY(set_service(request.agent_id(), "", false, request.drain()));
  TRY_ASSIGN(*response->mutable_agent(), agent(caller, request.agent_id()));
  return {};
}

Status ClusterService::EnableAgent(const Caller& caller, const v1::EnableAgentRequest& request,
                                   v1::EnableAgentResponse* response) {
  TRY(set_service(request.agent_id(), "", true, false));
  TRY_ASSIGN(*response->mutable_agent(), agent(caller, request.agent_id()));
  return {};
}

Status ClusterService::DisableSlot(const Caller& caller, const v1::DisableSlotRequest& request,
                                   v1::DisableSlotResponse* response) {
  // Resolved first: an unknown slot is an error, and the reply needs it.
  TRY_ASSIGN(const v1::Slot known, slot(caller, request.agent_id(), request.slot_id()));
  TRY(set_service(request.agent_id(), known.id(), false, request.drain()));
  TRY_ASSIGN(*response->mutable_slot(), slot(caller, request.agent_id(), request.slot_id()));
  return {};
}

Status ClusterService::EnableSlot(const Caller& caller, const v1::EnableSlotRequest& request,
                                  v1::EnableSlotResponse* response) {
  TRY_ASSIGN(const v1::Slot known, slot(caller, request.agent_id(), request.slot_id()));
  TRY(set_service(request.agent_id(), known.id(), true, false));
  TRY_ASSIGN(*response->mutable_slot(), slot(caller, request.agent_id(), request.slot_id()));
  return {};
}

}  // namespace det::api
