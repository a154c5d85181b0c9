// Maintenance of checkpoint storages for the master, a thread for each command: a storage may hang. Used by
// the agent's loop thread, which never waits for a job.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "common/base/result.h"
#include "common/storage/work.h"
#include "det/v1/agent.pb.h"

namespace det::agent {

/// The answer to a command. Numbers of commands are unique only within a session of the link.
struct StorageAnswer {
  std::uint64_t session = 0;
  v1::StorageDone done;
};

/// The running jobs. Not thread-safe.
class StorageJobs {
 public:
  using Sink = std::function<void(StorageAnswer)>;
  using Perform = std::function<storage::Done(const storage::Work&)>;
  static constexpr int kMaxRunning = 16;

  /// `sink` gets each answer on the thread of its job, `perform` is storage::perform(). Both may be called
  /// after the end of this object.
  StorageJobs(Sink sink, Perform perform) : sink_(std::move(sink)), perform_(std::move(perform)) {}
  /// Starts the job of a command that arrived in `session`. Errors: kResourceExhausted (kMaxRunning jobs
  /// run).
  Status start(const v1::StorageWork& command, std::uint64_t session);
  /// Must be called for each answer.
  void ended() { --running_; }

 private:
  const Sink sink_;
  const Perform perform_;
  int running_ = 0;
};

}  // namespace det::agent
