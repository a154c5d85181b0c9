// Storage work in flight on agents: matches the results of agents with the callers that wait for them.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>

#include "common/base/result.h"
#include "common/storage/work.h"
#include "master/loop/workers.h"

namespace det::api {

/// The table of calls belongs to the edge worker. Outlives the edge worker's jobs.
class StorageCalls {
 public:
  /// Sends work with the given number to an agent. Returns the session of the agent; 0 when the agent is not
  /// connected. Runs on the edge worker.
  using Send = std::function<std::uint64_t(std::int64_t number)>;

  explicit StorageCalls(loop::Workers& edge) : edge_(edge) {}

  /// Sends work and waits for its result. Blocks for at most `timeout`; must not be called on the edge
  /// worker. Errors: kUnavailable when the agent is not connected or its session ends, kDeadlineExceeded.
  Result<storage::Done> call(Send send, Duration timeout);

  // Edge worker only.

  /// Completes a call. Ignores an unknown number and a result of another session.
  void complete(std::uint64_t session, std::int64_t number, storage::Done done);
  /// Fails all calls of a closed session with kUnavailable.
  void expire(std::uint64_t session);
  std::size_t size() const { return calls_.size(); }

 private:
  using Promise = std::shared_ptr<std::promise<Result<storage::Done>>>;
  struct Call {
    std::uint64_t session;
    Promise result;
  };
  loop::Workers& edge_;
  std::atomic<std::int64_t> next_{1};
  std::map<std::int64_t, Call> calls_;  ///< by number
};

}  // namespace det::api
