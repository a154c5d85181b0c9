// Processes of allocations: starts, re-attaches and signals supervisors, and concludes their ends. Used by
// one thread, except conclude_end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "agent/core/core.h"
#include "agent/data_dir.h"
#include "agent/warm_start.h"
#include "agent/watcher.h"
#include "common/base/process.h"

namespace det::agent {

/// The supervisors of all live allocations of this agent.
class Runtime {
 public:
  /// `programs`: directory of det-supervisor and det-harness. `warm_start`: null if every task is executed.
  /// `data`, `watcher` and `warm_start` must outlive this object.
  Runtime(const DataDir& data, std::string programs, Watcher& watcher, WarmStart* warm_start)
      : data_(data), programs_(std::move(programs)), watcher_(watcher), warm_start_(warm_start) {}
  /// Leaves the supervisors running.
  ~Runtime();

  /// Starts a supervisor with the spec that prepare() wrote. The watcher reports its end. Errors: damaged
  /// spec, failure to spawn.
  Result<Phase> launch(const AllocationId& id);
  /// Re-attaches to the supervisor that an earlier agent started. Returns nothing if it no longer runs.
  std::optional<Phase> reattach(const AllocationId& id);
  /// Stores `stop` for a later agent process, then sends SIGTERM to the supervisor.
  void terminate(const AllocationId& id, const Exit& stop);
  /// Sends SIGKILL to the supervisor, and thereby to the task's main process. conclude_end cleans up the
  /// rest.
  void kill_hard(const AllocationId& id);
  /// Returns the allocation of a key that the watcher reported, and forgets it.
  std::optional<AllocationId> ended(std::uint64_t key);

 private:
  struct Process {
    std::uint64_t key = 0;
    std::optional<Child> child;  ///< set if this process started it
    UniqueFd pidfd;              ///< set if it was re-attached
    int fd() const { return child ? child->pidfd() : pidfd.get(); }
  };
  // Registers a process with the watcher.
  Status keep(const AllocationId& id, Process process);

  const DataDir& data_;
  const std::string programs_;
  Watcher& watcher_;
  WarmStart* const warm_start_;
  std::map<AllocationId, Process> processes_;
  std::uint64_t next_key_ = 0;
};

/// Concludes an allocation after the end of its supervisor and returns its exit. A missing exit.json means
/// that the supervisor was killed: the remaining processes of the task are killed, and the exit is kLost,
/// never a success. Blocks until no process is left, at most one minute. Thread-safe.
Exit conclude_end(const AllocationId& id, const TaskDir& dir);

// Files in the allocation's directory that a later agent process reads. Writes are atomic; reads return
// nothing for absent or damaged files.
Status write_stop(const TaskDir& dir, const Exit& stop);
std::optional<Exit> read_stop(const TaskDir& dir);
Status write_outcome(const TaskDir& dir, const Exit& exit);
std::optional<Exit> read_outcome(const TaskDir& dir);

}  // namespace det::agent
