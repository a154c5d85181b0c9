#include "agent/upstream_info.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/json.h"

namespace det::agent {
namespace {

/// Parses JSON of the master; an empty object if it is damaged, since these files are best effort.
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
  // The processes of one agent meet on the loopback interface.
  if (order.gang_size() == 0) {
    addresses.push_back("127.0.0.1");
    slots.push_back(order.slots_size());
  }
  return {{"container_addrs", addresses}, {"container_rank", order.part()}, {"container_slot_counts", slots}};
}

Json resources(const v1::StartAllocation& order, const Surroundings& around) {
  Json uuids = Json::array();
  for (const Device& device : devices_of(order, around.devices))
    if (device.type == "CUDA") uuids.push_back(device.uuid);
  return {{"gpu_uuids", uuids}};
}

/// Links the storage of shared_fs. A missing directory is created here: the task would otherwise create it on
/// the machine's own disk, where its files are lost.
Status link_storage(const TaskDir& dir, const v1::StartAllocation& order) {
  const Json config = parsed(order.experiment_config());
  const Json storage =
      config.is_object() ? config.value("checkpoint_storage", Json::object()) : Json::object();
  const Json path = storage.is_object() && storage.value("type", Json()) == "shared_fs"
                        ? storage.value("host_path", Json())
                        : Json();
  if (!path.is_string()) return {};
  const auto& target = path.get_ref<const std::string&>();
  TRY(make_directories(target));
  if (::symlink(target.c_str(), dir.upstream_storage().c_str()) != 0 && errno != EEXIST)
    return fail_errno(dir.upstream_storage());
  return {};
}

}  // namespace

Status link_model(const TaskDir& dir) {
  const std::string place = dir.upstream() + "/train/model";
  TRY(remove_tree(place));
  TRY(make_directories(dir.upstream() + "/train", 0700));
  std::error_code error;
  // Hard links: the copy takes no disk space.
  using Options = std::filesystem::copy_options;
  std::filesystem::copy(dir.workdir(), place,
                        Options::recursive | Options::create_hard_links | Options::copy_symlinks, error);
  return error ? fail(Code::kInternal, place + ": " + error.message()) : Status();
}

Status write_upstream_info(const TaskDir& dir, const v1::StartAllocation& order, const Surroundings& around) {
  const std::string info = dir.upstream() + "/info";
  TRY(make_directories(info, 0700));
  TRY(replace_file(info + "/cluster.json", dump_json(cluster(order, around)), 0600));
  TRY(replace_file(info + "/trial.json", dump_json(trial(order)), 0600));
  TRY(replace_file(info + "/rendezvous.json", dump_json(rendezvous(order)), 0600));
  TRY(replace_file(info + "/resources.json", dump_json(resources(order, around)), 0600));
  return link_storage(dir, order);
}

}  // namespace det::agent
