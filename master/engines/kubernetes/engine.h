// Pilots of one pool as Jobs of Kubernetes. Two threads follow Jobs and pods; the thread of the edge submits
// and deletes, and has the state.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "common/base/event.h"
#include "common/base/queue.h"
#include "master/config/pools.h"
#include "master/engines/engine.h"
#include "master/engines/kubernetes/client.h"
#include "master/engines/kubernetes/fleet.h"
#include "master/engines/kubernetes/watch.h"

namespace det::engines {

class Kubernetes : public Engine {
 public:
  /// `instance` names the pilots of this pool and cluster: the beginning of their names, without a hyphen.
  Kubernetes(ProviderConfig config, std::string instance, SendHttp http);
  ~Kubernetes() override;

  std::string name() const override { return "Kubernetes"; }
  /// Returns the state of the watches, without a call. The first call starts them and waits for their lists.
  /// Deletes ended Jobs, and a pilot that has only some of its nodes for too long.
  Result<std::vector<EngineJob>> list() override;
  Result<std::string> submit(const core::SubmitPilot& pilot) override;
  Status cancel(const std::vector<std::string>& ids) override;
  void stop() override;

 private:
  /// Applies the changes of the watches. Waits for their lists, up to kListLimit.
  void refresh();
  void release_partial();
  /// Creates the PodGroups of new Jobs, which their pods wait for. A refused PodGroup ends its Job. Errors:
  /// kUnavailable.
  Status make_pod_groups();
  /// Creates the PodGroup of one Job. Errors: those of Client::call.
  Status make_pod_group(const Object& job);
  /// Returns the uid of the ConfigMap that owns the pilots, and creates it.
  Result<std::string> owner();
  Status remove(const std::string& job);
  /// Marks the state as outdated after a call without a reply. Returns `error`.
  Error lost(Error error);

  const ProviderConfig config_;
  const std::string instance_;
  Event stopped_;
  const Client client_;
  Queue<Change> changes_;
  Watch jobs_, pods_;
  Fleet fleet_;
  std::set<std::string> grouped_;  ///< Jobs with a PodGroup
  bool started_ = false;
  MonoTime release_at_;  ///< earliest time of the next release: the freed nodes are assigned first
};

/// Returns the engine of a pool.
std::unique_ptr<Engine> make_kubernetes(const ProviderConfig& config, const std::string& instance);

}  // namespace det::engines
