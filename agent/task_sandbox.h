// Sandboxes of an allocation: which files of the machine its processes see, and as which user they run.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>

#include "agent/prepare.h"
#include "common/build/model_build.h"
#include "common/sandbox/sandbox.h"

namespace det::agent {

/// Users of the allocations that have a directory. Used by one thread.
class TaskUids {
 public:
  /// `first`, `count`: the range; `count` is positive. `start`: offset of the first user, so that two agents
  /// of a machine begin at different ones.
  TaskUids(uid_t first, uid_t count, std::uint64_t start)
      : first_(first), count_(count), next_(static_cast<uid_t>(start % count)) {}
  /// Returns the user of an allocation: the one it has, else the next free one. An ended allocation's user is
  /// the last to be used again. If all are in use, two allocations share one.
  uid_t take(const AllocationId& id);
  /// Records the user of an allocation that an earlier agent started.
  void keep(const AllocationId& id, uid_t uid) { used_.insert_or_assign(id, uid); }
  void release(const AllocationId& id) { used_.erase(id); }

 private:
  const uid_t first_, count_;
  uid_t next_;
  std::map<AllocationId, uid_t> used_;
};

/// Directory of a checkpoint storage: `below`, which may be empty, is the part that one experiment uses.
struct StorageDirectory {
  std::string base, below;
  std::string path() const { return below.empty() ? base : base + "/" + below; }
};

/// Returns the checkpoint directory on this machine that the experiment's configuration (JSON) names; an
/// empty one for a bucket or none.
StorageDirectory storage_directory(const std::string& experiment_config);

/// Returns `resources.shm_size` of a configuration (JSON) in bytes; 0 if it has none.
std::int64_t shared_memory(const std::string& experiment_config);

/// User and group of a task (`agent_user_group` of the configuration).
struct TaskAccount {
  ShownUser ids;
  std::string user, group;
};
/// Returns the account that the configuration (JSON) names; nothing for none.
std::optional<TaskAccount> task_account(const std::string& experiment_config);

/// Returns the type of the checkpoint storage of the experiment's configuration (JSON) if it is a bucket,
/// else "".
std::string bucket_storage(const std::string& experiment_config);

/// Returns the sandbox of the task in `dir`. `model`: its built model, or "". `root`: the files of its image,
/// or "". Creates the directory of the checkpoint storage if it is missing. Errors: kPermissionDenied for a
/// storage directory that would expose the system or the agent, and for a bind mount of a directory that
/// tasks of this agent do not see; file system errors.
Result<Sandbox> task_sandbox(const Order& order, const TaskDir& dir, const Site& site,
                             const std::string& model, const std::string& root = "");

/// Returns the sandbox of the compiler: it reads the model directory, `header` (path of a precompiled header,
/// or "") and `bind_mounts` without :rw, and writes only to `work`, which is given to its user.
Result<Sandbox> build_sandbox(const Order& order, const TaskDir& dir, const Site& site,
                              const std::string& work, const std::string& header);

/// Determines the sandbox of tasks and logs what it lacks. `init`: path of det-task-init. Errors:
/// kFailedPrecondition if a required one is not possible.
Result<SandboxReport> choose_sandbox(const Settings& settings, const DataDir& data, const std::string& init);

/// Removes old entries of the caches of code archives, models and images. Images of live tasks stay: their
/// files are in use.
void trim_caches(const Site& site);

/// Gives a tree to a user and its group. Symbolic links are not followed. Without `uid` it does nothing.
Status give_tree(const std::string& path, std::optional<uid_t> uid);

}  // namespace det::agent
