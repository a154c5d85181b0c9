// Files of a checkpoint with the state of optimizers that are divided over the ranks (`optimizations.zero`):
// each rank writes its own, optimizer_state_<rank>_of_<ranks>.pth, into the directory that the chief makes.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "common/base/queue.h"
#include "common/base/result.h"
#include "harness/src/checkpoint/snapshot.h"
#include "harness/src/trial/run_info.h"
#include "harness/src/trial/wrapped_objects.h"

namespace det {

/// Writes the part of this rank, in the background. Used by the training thread; on the chief, await_all() is
/// called by the thread that writes the checkpoint.
class PartWriter {
 public:
  PartWriter(const RunInfo& run, const WrappedObjects& wrapped);
  /// Waits for the write in progress.
  ~PartWriter();
  PartWriter(const PartWriter&) = delete;

  /// Whether optimizers are divided. Constant while the trial trains.
  bool active() const { return !wrapped_.zero.empty(); }
  /// Copies the state and starts writing it for the checkpoint `uuid`. Call wait() before. Throws
  /// std::runtime_error when the state cannot be saved.
  void save(const std::string& uuid);
  /// True when the write in progress has failed: wait() returns at once.
  bool failed() const { return under_way_ && failed_; }
  /// Waits for the write in progress, if any, and returns its result.
  Status wait();
  /// Waits for the files of all ranks in `directory`. Errors: that of this rank's write; a rank is gone, or
  /// its file does not appear.
  Status await_all(const std::string& directory) const;

 private:
  void work();
  Status write(const std::string& uuid);

  const RunInfo& run_;
  const WrappedObjects& wrapped_;
  Snapshot snapshot_;
  bool under_way_ = false;
  std::atomic<bool> failed_ = false;
  Status failure_;  ///< valid once `failed_` is true
  Queue<std::string> jobs_{2};
  Queue<Status> results_{2};
  std::thread thread_;  ///< started by the first save()
};

/// Adds the parts in `directory` to the state of state_dict.pth. Does nothing without parts. Throws
/// std::runtime_error when one is missing or damaged.
void add_parts(pickle::Value& state, const std::string& directory);

}  // namespace det
