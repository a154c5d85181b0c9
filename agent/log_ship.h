// Owns the way of task logs to the master: one thread follows the log files and sends what is new, in
// batches, again and again until it is durable. While the master is away the file is the buffer.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "agent/task/log_file.h"
#include "agent/task/task_dir.h"
#include "base/ids.h"
#include "base/queue.h"
#include "det/v1/agent.pb.h"

namespace det::agent {

/// The line as the master stores it: "[rank=3] " and "WARNING: " at its start become fields;
/// rank -1 is none.
v1::LogLine to_line(const LogRecord& record);

class LogShip {
 public:
  /// `shipped` is called on the shipper's thread.
  LogShip(std::shared_ptr<grpc::Channel> channel, std::string agent_id,
          std::function<void(AllocationId)> shipped);
  ~LogShip();

  // Any thread; done in the order called.
  void follow(const AllocationId& id, const TaskDir& dir);
  /// Nothing more is written: `shipped` is called once all is durable, or the master will not have it.
  void finish(const AllocationId& id);
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
    LogPosition position;
    std::int64_t punched = 0;
    bool finishing = false;
    bool refused = false;  ///< the master will not have it
  };
  enum class Sent { kAll, kSome, kNot };

  void run(std::stop_token stop);
  void handle(const Follow& command);
  void handle(const Finish& command);
  void handle(const Drop& command) { tasks_.erase(command.id); }
  /// One batch of one task.
  Sent ship(const AllocationId& id, Task& task, std::stop_token stop);
  void advance(const AllocationId& id, Task& task, const LogBatch& batch, std::int64_t next_line);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::string agent_id_;
  const std::function<void(AllocationId)> shipped_;
  Queue<std::variant<Follow, Finish, Drop>> commands_{4096};
  std::map<AllocationId, Task> tasks_;  ///< the thread's own
  std::jthread thread_;
};

}  // namespace det::agent
