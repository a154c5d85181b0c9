// Record of this process's last collective calls, in shared memory for the agent's supervisor, which names
// the stuck rank after a hang. Without an agent (DET_RUN_DIR is not set) nothing is recorded.
#pragma once

#include <cstdint>

#include "common/base/layouts/collective_memory.h"

namespace det {

/// The shared memory of a process. Records are lock-free; each is written by one thread, that of its call.
class CollectiveLog {
 public:
  /// A call in progress. Default-constructed: of a process without a log.
  struct Call {
    collective::Record* record = nullptr;
    std::uint64_t number = 0;
  };

  /// The log of this process, created at the first call; null without an agent, or when the memory cannot be
  /// created. Thread-safe.
  static CollectiveLog* of_process();
  /// Creates the memory. Null on an error.
  static CollectiveLog* create(int rank, int ranks);

  /// Records the start of a call. The calls of a channel must not be concurrent. Costs one read of the clock
  /// and one atomic addition.
  Call begin(collective::Channel channel, collective::Operation operation, std::uint64_t bytes);
  /// Records its end. A record that was overwritten meanwhile is left alone.
  static void end(const Call& call, bool succeeded);

  const collective::Memory& memory() const { return *memory_; }

  /// Makes the process write the stack of its main thread on request of the supervisor: handles
  /// SIGRTMIN + 3, unless the program has a handler of its own. Needs prepare_symbolize().
  void handle_stack_requests();

 private:
  explicit CollectiveLog(collective::Memory* memory) : memory_(memory) {}
  collective::Memory* memory_;
};

/// Records one blocking call: it ends with the object, as failed when an exception is on its way.
class CollectiveScope {
 public:
  CollectiveScope(collective::Channel channel, collective::Operation operation, std::uint64_t bytes);
  ~CollectiveScope();
  CollectiveScope(const CollectiveScope&) = delete;

 private:
  CollectiveLog::Call call_;
  int exceptions_;
};

}  // namespace det
