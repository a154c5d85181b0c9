// Gangs: the PodGroup of a pilot, so that a scheduler of Kubernetes starts all of its pods or none. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/base/json.h"
#include "master/config/pools.h"
#include "master/engines/kubernetes/client.h"
#include "master/engines/kubernetes/objects.h"

namespace det::engines {

/// Whether a pilot of `nodes` nodes has a PodGroup.
bool has_pod_group(const ProviderConfig& config, int nodes);
/// Makes the pods of a template members of the PodGroup of their pilot, which has its name.
void join_pod_group(const ProviderConfig& config, const std::string& name, Json& pods);
/// Returns the kinds of PodGroups that the API server may have, in the order of preference.
std::vector<Resource> pod_group_kinds(const ProviderConfig& config);
/// Returns the PodGroup of a Job. The Job owns it, so both are deleted together.
Json pod_group(const ProviderConfig& config, const Resource& kind, const Object& job);

}  // namespace det::engines
