// Garbage collector of checkpoints. Checks an experiment whenever it changes and removes files where the
// storage is reachable: from the master, on the agent that wrote them, or on any agent for shared storage.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/storage/policy.h"
#include "common/storage/work.h"
#include "master/db/queries/gc.h"
#include "master/loop/change.h"
#include "master/loop/workers.h"

namespace det::gc {

/// Access to the storages of agents. Both functions are thread-safe and may block for up to a minute.
struct StorageAgents {
  /// Performs work on an agent. Errors: kUnavailable (not connected, or no answer).
  std::function<Result<storage::Done>(const AgentId&, const storage::Work&)> ask;
  /// Returns the connected agents.
  std::function<std::vector<AgentId>()> connected;
};

/// Identity of the cluster and timing of the collector.
struct CollectorOptions {
  std::string cluster_id;
  /// Storages that the master may access. Others are left alone, and their removals wait.
  std::shared_ptr<const storage::Storages> storages = std::make_shared<storage::Storages>();
  Duration pause = std::chrono::milliseconds(500);  ///< between two checks
  /// Initial back-off after a failed removal; doubles up to 20 times this.
  Duration retry = std::chrono::seconds(30);
  Duration sweep = std::chrono::hours(1);  ///< between two searches for orphans
  /// Check in the background; if false, only on request.
  bool watch = true;
};

/// Collects checkpoints on a background thread, and on the calling thread for the functions at the end. Safe
/// to repeat after a crash: removals are marked in the database first.
class Collector {
 public:
  /// `pool` must outlive the collector. See CollectorOptions::watch for the background thread.
  Collector(db::Pool& pool, CollectorOptions options, StorageAgents agents);
  ~Collector() { stop(); }

  // Thread-safe, non-blocking.

  /// Schedules a check of the experiment that changed, if the change can make checkpoints superfluous.
  void changed(const loop::Change& change);
  /// Schedules a check of an experiment.
  void look_at(ExperimentId id);
  /// Stops the background thread after the current check. Idempotent.
  void stop() { worker_.stop(); }

  // Synchronous operations: they block the calling thread for as long as the storages take.

  /// Removes the files of those checkpoints that are marked for removal. On an error, which names the
  /// unreachable storage, the marks stay and the removal is retried in the background.
  Status remove(const std::vector<CheckpointId>& uuids);
  /// Removes all checkpoints, reported media and TensorBoard files of an experiment that has ended.
  Status remove_all(ExperimentId id);
  /// Removes the TensorBoard files of an experiment from its directory. Files in buckets stay. Errors:
  /// kFailedPrecondition (its storage cannot be reached).
  Status remove_tensorboard(ExperimentId id);
  /// Applies the policy to an experiment: marks superfluous checkpoints and removes them.
  Status collect(ExperimentId id);
  /// Finds and removes orphans: complete checkpoints that were never reported, or that reappeared after
  /// removal. Returns how many were removed.
  Result<std::size_t> sweep();

 private:
  // The background check, every `pause`.
  struct Storage;
  void tick();
  // Sets the time of the next retry, unless it is in the future, and logs a new reason once.
  void note_failure(const Status& status);
  // Removes the media of an experiment.
  Status remove_media(ExperimentId id);
  // Removes names below the directory of an experiment's storage.
  Status remove_below(ExperimentId id, const std::vector<std::string>& names);
  // Retries all marked removals.
  Status finish_marked();
  Status remove_marked(const std::vector<db::Marked>& marked);
  // Removes names at one storage and adds those that are gone to `gone`.
  Status remove_at(const Storage& place, std::vector<std::string> names,
                   std::vector<CheckpointId>& gone) const;
  // Returns the agents to try, best first.
  std::vector<AgentId> agents_for(const Storage& place) const;

  db::Pool& pool_;
  const CollectorOptions options_;
  const StorageAgents agents_;
  std::atomic<bool> all_{true};  ///< all experiments are to be checked
  // State of the background thread.
  std::set<ExperimentId> dirty_, later_;
  bool marked_ = true;  ///< marked checkpoints may exist
  std::optional<MonoTime> retry_at_, sweep_at_;
  Duration wait_{0};
  std::string last_trouble_;
  loop::Workers worker_;
};

}  // namespace det::gc
