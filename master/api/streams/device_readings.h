// Latest readings of the devices of connected agents: utilization, memory, temperature, power and clocks.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/shared.h"
#include "det/v1/cluster.pb.h"

namespace det::api {

/// Written by one thread, read by any. Readings are not stored.
class DeviceReadings {
 public:
  /// Time between two changes that are published to open pages, over all agents.
  static constexpr Duration kPublishInterval = std::chrono::seconds(10);

  /// Readings of one agent, by slot id.
  using Slots = std::vector<v1::DeviceReading>;
  using Agents = std::map<AgentId, std::shared_ptr<const Slots>>;

  DeviceReadings() { agents_.set(std::make_shared<const Agents>()); }
  /// Replaces the readings of an agent. Returns true if the change is to be published.
  bool put(const AgentId& agent, Slots slots, MonoTime now);
  void remove(const AgentId& agent);

  /// Returns the readings of all agents; never null.
  std::shared_ptr<const Agents> get() const { return agents_.get(); }

 private:
  Shared<Agents> agents_;
  std::optional<MonoTime> published_;
};

/// Returns the reading of a slot, or null.
const v1::DeviceReading* find_reading(const DeviceReadings::Agents& agents, const AgentId& agent,
                                      std::size_t slot);

}  // namespace det::api
