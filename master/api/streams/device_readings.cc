#include "master/api/streams/device_readings.h"

#include <utility>

namespace det::api {

bool DeviceReadings::put(const AgentId& agent, Slots slots, MonoTime now) {
  // The map has one pointer for each agent, so that its copy is small.
  auto agents = std::make_shared<Agents>(*agents_.get());
  (*agents)[agent] = std::make_shared<const Slots>(std::move(slots));
  agents_.set(std::move(agents));
  if (published_ && now - *published_ < kPublishInterval) return false;
  published_ = now;
  return true;
}

void DeviceReadings::remove(const AgentId& agent) {
  if (!agents_.get()->contains(agent)) return;
  auto agents = std::make_shared<Agents>(*agents_.get());
  agents->erase(agent);
  agents_.set(std::move(agents));
}

const v1::DeviceReading* find_reading(const DeviceReadings::Agents& agents, const AgentId& agent,
                                      std::size_t slot) {
  const auto found = agents.find(agent);
  if (found == agents.end() || slot >= found->second->size()) return nullptr;
  return &(*found->second)[slot];
}

}  // namespace det::api
