#include "agent/upstream_info.h"

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"

namespace det::agent {
namespace {

Json parsed(const std::string& text) {
  const auto json = parse_json(text, {.bytes = 64 << 20, .depth = 64});
  return json ? *json : Json::object();
}

Json cluster(const v1::StartAllocation& order, const Surroundings& around) {
  Json slots = Json::array();
  for (const int slot : order.slots()) slots.push_back(slot);
  Json out{{"master_url", web_address(around.master)},
           {"cluster_id", around.cluster_id},
           {"agent_id", around.agent_id},
           {"slot_ids", slots},
           {"task_id", order.task_id()},
           {"allocation_id", order.allocation_id()},
           {"session_token", order.token()},
           {"task_type", "TRIAL"}};
  if (!order.latest_checkpoint().empty()) out["latest_checkpoint"] = order.latest_checkpoint();
  return out;
}

Json trial(const v1::StartAllocation& order) {
  return {{"trial_id", order.trial_id()},
          {"experiment_id", order.experiment_id()},
          {"trial_seed", order.trial_seed()},
          {"hparams", parsed(order.hparams())},
          {"config", parsed(order.experiment_config())},
          {"steps_completed", order.steps_completed()},
          {"trial_run_id", order.run()},
          {"debug", false},
          {"inter_node_network_interface", nullptr}};
}

Json rendezvous(const v1::StartAllocation& order) {
  Json addresses = Json::array(), slots = Json::array();
  for (const v1::GangPart& part : order.gang()) {
    addresses.push_back(part.address());
    slots.push_back(part.slots());
  }
  if (order.gang_size() == 0) {
    addresses.push_back("127.0.0.1");
    slots.push_back(order.slots_size());
  }
  return {{"container_addrs", addresses}, {"container_rank", order.part()}, {"container_slot_counts", slots}};
}

Json resources(const v1::StartAllocation& order, const Surroundings& around) {
  Json uuids = Json::array();
  for (const int slot : order.slots()) {
    if (slot < 0 || slot >= static_cast<int>(around.devices.size())) continue;
    const Device& device = around.devices[static_cast<std::size_t>(slot)];
    if (device.type == "CUDA") uuids.push_back(device.uuid);
  }
  return {{"gpu_uuids", uuids}};
}

}  // namespace

Status write_upstream_info(const std::string& directory, const v1::StartAllocation& order,
                           const Surroundings& around) {
  TRY(make_directories(directory + "/info", 0700));
  TRY(replace_file(directory + "/info/cluster.json", dump_json(cluster(order, around)), 0600));
  TRY(replace_file(directory + "/info/trial.json", dump_json(trial(order)), 0600));
  TRY(replace_file(directory + "/info/rendezvous.json", dump_json(rendezvous(order)), 0600));
  return replace_file(directory + "/info/resources.json", dump_json(resources(order, around)), 0600);
}

}  // namespace det::agent
