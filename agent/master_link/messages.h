// Conversion of the agent's state to messages for the master.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/core.h"
#include "agent/gpu/faults.h"
#include "det/v1/agent.pb.h"

namespace det::agent {

/// State of an allocation. `exit` belongs to kTerminated.
v1::AllocationUpdate update_of(const AllocationId& id, Phase phase, const std::optional<Exit>& exit);

/// Adds the reasons of the slots that are out of service.
void add_problems(const SlotHealth& health, google::protobuf::Map<std::int32_t, std::string>* problems);

/// Readings by slot id. Values that a GPU does not support are unset.
v1::DeviceReadings readings_of(const std::vector<GpuReading>& readings);

}  // namespace det::agent
