// Shipping of task logs to the master. One thread follows the log files and sends new lines in batches until
// they are durable. The file is the buffer while the master is unreachable.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "agent/task/log_file.h"
#include "common/base/ids.h"
#include "common/base/queue.h"
#include "common/task/task_dir.h"
#include "det/v1/agent.pb.h"

namespace det::agent {

/// Converts a record to the master's form. Prefixes "[rank=3] " and "WARNING: " become fields; rank is -1
/// without a prefix.
v1::LogLine to_line(const LogRecord& record);

/// Ships the logs of all allocations of the agent. Lines are numbered, so that repeated batches are harmless.
class LogShip {
 public:
  /// `shipped` is called on the shipper's thread when a finished log is durable or refused.
  LogShip(std::shared_ptr<grpc::Channel> channel, std::string agent_id,
          std::function<void(AllocationId)> shipped);
  ~LogShip();

  // Thread-safe; executed in the order of the calls.

  /// Starts to ship the log in `dir` from its stored position. Idempotent.
  void follow(const AllocationId& id, const TaskDir& dir);
  /// Declares the log complete: `shipped` is called when every line is durable, or at once if the master
  /// refuses the log.
  void finish(const AllocationId& id);
  /// Stops shipping the log; `shipped` is not called.
  void forget(const AllocationId& id);

 private:
  struct Follow {
    AllocationId id;
    TaskDir dir;
  };
  struct Finish {
    AllocationId id;
  };
  struct Drop {
    AllocationId id;
  };
  struct Task {
    TaskDir dir;
    /// First line that is not durable at the master.
    LogPosition position;
    /// Offset up to which disk space was freed.
    std::int64_t punched = 0;
    /// finish() was called.
    bool finishing = false;
    /// Rejected by the master, or unreadable.
    bool refused = false;
  };
  // kAll: nothing is left. kSome: a batch was sent. kNot: the master cannot be reached.
  enum class Sent { kAll, kSome, kNot };

  void run(const std::stop_token& stop);
  void handle(const Follow& command);
  void handle(const Finish& command);
  void handle(const Drop& command) { tasks_.erase(command.id); }
  /// Ships one batch of one task.
  Sent ship(const AllocationId& id, Task& task, const std::stop_token& stop);
  // Stores the position after a durable batch and frees the disk space of shipped lines.
  void advance(const AllocationId& id, Task& task, const LogBatch& batch, std::int64_t next_line);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::string agent_id_;
  const std::function<void(AllocationId)> shipped_;
  Queue<std::variant<Follow, Finish, Drop>> commands_{4096};
  std::map<AllocationId, Task> tasks_;  ///< used by the thread only
  std::jthread thread_;
};

}  // namespace det::agent
