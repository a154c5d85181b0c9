// Owns the removal of checkpoints that nobody needs: it looks at an experiment whenever something of it has
// changed, and removes where the storage can be reached: here, or on the agent that wrote, or on any for a
// storage that all share.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "master/db/queries_gc.h"
#include "master/loop/change.h"
#include "master/loop/workers.h"
#include "storage/work.h"

namespace det::gc {

/// How to reach agents. Both may be called on any thread and may take a minute.
struct Hands {
  /// kUnavailable when the agent is not connected or does not answer.
  std::function<Result<storage::Done>(const AgentId&, const storage::Work&)> ask;
  std::function<std::vector<AgentId>()> connected;
};

struct CollectorOptions {
  std::string cluster_id;
  Duration pause = std::chrono::milliseconds(500);  ///< between two looks
  Duration retry = std::chrono::seconds(30);        ///< for what could not be removed; doubled up to 20 times
  Duration sweep = std::chrono::hours(1);           ///< between two searches for orphans
  bool watch = true;                                ///< look by itself; else only when asked
};

class Collector {
 public:
  Collector(db::Pool& pool, CollectorOptions options, Hands hands);
  ~Collector() { stop(); }

  /// Any thread; never waits.
  void changed(const loop::Change& change);
  void look_at(ExperimentId id);
  /// Ends the looking. Idempotent.
  void stop() { worker_.stop(); }

  // What follows is done on the calling thread, which must be one that may wait.

  /// Removes the files of those that are marked. An error names what could not be reached; the marks stay,
  /// and it is tried again later.
  Status remove(const std::vector<CheckpointId>& uuids);
  /// All of an experiment that has ended: its checkpoints, and what it wrote for TensorBoard.
  Status remove_all(ExperimentId id);
  /// One pass over an experiment: what the policy lets go is marked and removed.
  Status collect(ExperimentId id);
  /// Finds checkpoints that were never reported, or came back, and removes them. How many there were.
  Result<std::size_t> sweep();

 private:
  struct Place;
  void tick();
  void note_failure(const Status& status);
  Status finish_marked();
  Status remove_marked(const std::vector<db::Marked>& marked);
  Status remove_at(const Place& place, std::vector<std::string> names, std::vector<CheckpointId>& gone) const;
  std::vector<AgentId> agents_for(const Place& place) const;

  db::Pool& pool_;
  const CollectorOptions options_;
  const Hands hands_;
  std::atomic<bool> all_{true};  ///< every experiment is to be looked at
  // Of the worker.
  std::set<ExperimentId> dirty_, later_;
  bool marked_ = true;  ///< there may be marked ones
  std::optional<MonoTime> retry_at_, sweep_at_;
  Duration wait_{0};
  std::string last_trouble_;
  loop::Workers worker_;
};

}  // namespace det::gc
