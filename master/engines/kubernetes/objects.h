// Jobs and pods of Kubernetes: the Job of a pilot, and the parts of objects that the master reads. Pure.
#pragma once

#include <string>

#include "common/base/json.h"
#include "master/config/pools.h"
#include "master/core/model.h"

namespace det::engines {

/// The parts of a Job or pod that matter.
struct Object {
  std::string name;
  std::string uid;                                      ///< of a Job
  std::string job;                                      ///< of a pod: the name of its Job
  core::PilotPhase phase = core::PilotPhase::kPending;  ///< kPending, kRunning or kEnded
  bool assigned = false;                                ///< of a pod: it has a node
  bool failed = false;                                  ///< it has ended with a failure
  int nodes = 0;                                        ///< of a Job: its pods
  std::string created;  ///< of a Job: RFC 3339, in seconds; comparable as text
  std::string reason;   ///< why it is pending or has failed
  bool operator==(const Object&) const = default;
};

/// Reads a Job or a pod. Unknown and missing fields are ignored.
Object read_job(const Json& json);
Object read_pod(const Json& json);

/// Returns the selector of the Jobs and pods of `instance`, the part of a cluster's pilots in one pool.
std::string selector(const std::string& instance);
/// Returns the ConfigMap that owns the Jobs of `instance`. Its deletion ends all of them.
Json owner_map(const std::string& instance);
/// Returns the Job of a pilot. `owner_uid`: of the ConfigMap. The template of the configuration is merged
/// into its pods: maps are joined, lists of maps with names are joined by name, other lists are appended.
Json pilot_job(const ProviderConfig& config, const std::string& instance, const std::string& pool,
               const std::string& name, int nodes, const std::string& owner_uid);

}  // namespace det::engines
