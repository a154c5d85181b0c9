// Owns allocations as processes: supervisors started, found again, signaled, and what they leave when they
// end. Used by one thread, but for conclude_end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "agent/core/core.h"
#include "agent/data_dir.h"
#include "agent/watcher.h"
#include "base/process.h"

namespace det::agent {

class Runtime {
 public:
  Runtime(const DataDir& data, std::string supervisor, Watcher& watcher)
      : data_(data), supervisor_(std::move(supervisor)), watcher_(watcher) {}
  /// Supervisors are left to run.
  ~Runtime();

  /// Starts the supervisor on the spec that prepare left. Its end is told to the watcher.
  Result<Phase> launch(const AllocationId& id);
  /// Takes up the supervisor that an earlier agent started; nothing when it is gone.
  std::optional<Phase> reattach(const AllocationId& id);
  /// Keeps `stop` for the agent's next life, then SIGTERM to the supervisor.
  void terminate(const AllocationId& id, const Exit& stop);
  /// SIGKILL to the supervisor, and so to the task's main process; conclude_end sees to the rest.
  void kill_hard(const AllocationId& id);
  /// Whose end the watcher told.
  std::optional<AllocationId> ended(std::uint64_t key);

 private:
  struct Process {
    std::uint64_t key = 0;
    std::optional<Child> child;  ///< when we started it
    UniqueFd pidfd;              ///< when we found it
    int fd() const { return child ? child->pidfd() : pidfd.get(); }
  };
  Status keep(const AllocationId& id, Process process);
  void signal(const AllocationId& id, int number);

  const DataDir& data_;
  const std::string supervisor_;
  Watcher& watcher_;
  std::map<AllocationId, Process> processes_;
  std::uint64_t next_key_ = 0;
};

/// The end of an allocation whose supervisor is gone. Without exit.json the supervisor was killed: everything
/// left of the task is killed too and the end is kLost, never a success. Blocks until nothing is left, a
/// minute at most.
Exit conclude_end(const AllocationId& id, const TaskDir& dir);

// The agent's words to its next life, in the allocation's directory.
Status write_stop(const TaskDir& dir, const Exit& stop);
std::optional<Exit> read_stop(const TaskDir& dir);
Status write_outcome(const TaskDir& dir, const Exit& exit);
std::optional<Exit> read_outcome(const TaskDir& dir);

}  // namespace det::agent
