// Conversion of the agent's state to messages for the master.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/core.h"
#include "agent/detect.h"
#include "agent/gpu/faults.h"
#include "common/storage/work.h"
#include "det/v1/agent.pb.h"

namespace det::agent {

/// State of an allocation. `exit` belongs to kTerminated.
v1::AllocationUpdate update_of(const AllocationId& id, Phase phase, const std::optional<Exit>& exit);

/// Adds the reasons of the slots that are out of service.
void add_problems(const SlotHealth& health, google::protobuf::Map<std::int32_t, std::string>* problems);

/// Readings by slot id. Values that a GPU does not support are unset.
v1::DeviceReadings readings_of(const std::vector<GpuReading>& readings);

/// Fills in the slots of a first message.
void add_devices(const std::vector<Device>& devices, v1::Hello& hello);
/// Answers the command `number` about a storage.
v1::StorageDone answer_of(std::int64_t number, const storage::Done& done);

}  // namespace det::agent
