#include "agent/master_link/messages.h"

namespace det::agent {

v1::AllocationUpdate update_of(const AllocationId& id, Phase phase, const std::optional<Exit>& exit) {
  v1::AllocationUpdate update;
  update.set_allocation_id(id.value);
  switch (phase) {
    case Phase::kPreparing:
      update.set_state(v1::AllocationUpdate::STATE_PULLING);
      break;
    case Phase::kStarting:
      update.set_state(v1::AllocationUpdate::STATE_STARTING);
      break;
    case Phase::kRunning:
      update.set_state(v1::AllocationUpdate::STATE_RUNNING);
      break;
    case Phase::kTerminated:
      update.set_state(v1::AllocationUpdate::STATE_TERMINATED);
      break;
  }
  if (!exit) return update;
  update.mutable_exit()->set_code(exit->code);
  update.mutable_exit()->set_message(exit->message);
  switch (exit->kind) {
    case Exit::Kind::kSucceeded:
      update.mutable_exit()->set_kind(v1::AllocationExit::KIND_SUCCEEDED);
      break;
    case Exit::Kind::kFailed:
      update.mutable_exit()->set_kind(v1::AllocationExit::KIND_FAILED);
      break;
    case Exit::Kind::kLost:
      update.mutable_exit()->set_kind(v1::AllocationExit::KIND_LOST);
      break;
    case Exit::Kind::kStopped:
      update.mutable_exit()->set_kind(v1::AllocationExit::KIND_STOPPED);
      break;
    case Exit::Kind::kOutOfMemory:
      update.mutable_exit()->set_kind(v1::AllocationExit::KIND_OUT_OF_MEMORY);
      break;
    case Exit::Kind::kStorageFull:
      update.mutable_exit()->set_kind(v1::AllocationExit::KIND_STORAGE_FULL);
      break;
    case Exit::Kind::kHung:
      update.mutable_exit()->set_kind(v1::AllocationExit::KIND_HUNG);
      break;
  }
  return update;
}

void add_problems(const SlotHealth& health, google::protobuf::Map<std::int32_t, std::string>* problems) {
  for (const auto& [slot, problem] : health.problems()) (*problems)[slot] = problem;
}

v1::DeviceReadings readings_of(const std::vector<GpuReading>& readings) {
  v1::DeviceReadings message;
  for (const GpuReading& reading : readings) {
    v1::DeviceReading* out = message.add_readings();
    if (reading.utilization) out->set_utilization(*reading.utilization);
    if (reading.memory_used) out->set_memory_used(*reading.memory_used);
    if (reading.memory_total) out->set_memory_total(*reading.memory_total);
    if (reading.temperature) out->set_temperature(*reading.temperature);
    if (reading.power) out->set_power(*reading.power);
    if (reading.sm_clock) out->set_sm_clock(*reading.sm_clock);
    if (reading.memory_clock) out->set_memory_clock(*reading.memory_clock);
    out->set_slowdown(slowdown_text(reading.slowdown));
  }
  return message;
}

void add_devices(const std::vector<Device>& devices, v1::Hello& hello) {
  for (const Device& device : devices) {
    v1::AgentDevice* out = hello.add_devices();
    out->set_type(device.type);
    out->set_brand(device.brand);
    out->set_uuid(device.uuid);
    out->set_link_group(device.link);
  }
}

v1::StorageDone answer_of(std::int64_t number, const storage::Done& done) {
  v1::StorageDone answer;
  answer.set_number(number);
  answer.mutable_removed()->Assign(done.removed.begin(), done.removed.end());
  answer.mutable_absent()->Assign(done.absent.begin(), done.absent.end());
  for (const storage::Found& one : done.found) {
    v1::StoredCheckpoint* found = answer.add_found();
    found->set_name(one.name);
    found->set_cluster_id(one.owner.cluster);
    found->set_trial_id(one.owner.trial.value);
    found->set_run(one.owner.run);
  }
  answer.set_error(done.error);
  return answer;
}

}  // namespace det::agent
