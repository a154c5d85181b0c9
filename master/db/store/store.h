// Durable storage of the core: an ordered log of write groups. Two implementations (memory for the simulator
// and tests, PostgreSQL) pass one contract suite.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/base/result.h"
#include "master/core/core.h"
#include "master/core/effect.h"

namespace det::db {

/// Number of a write group: counts from 1 without gaps within one process.
using Sequence = std::uint64_t;

/// A durable, ordered log of write groups with this crash contract:
///
/// - Groups become durable in the order of append(), each completely or not at all.
/// - After a crash the store holds a prefix of the appended groups that reaches at least to the last one
///   reported durable.
/// - A group is never applied twice within one process.
/// - Writes are upserts or keyed inserts, so a group in doubt after a crash may be followed by one that
///   repeats its effect.
class Store {
 public:
  virtual ~Store() = default;

  /// Loads everything that has not ended, and the next free ids. Call it once, before the first append().
  virtual Result<core::Recovered> load() = 0;

  /// Queues the writes of one batch of inputs as one atomic group and returns its number. Returns
  /// immediately; blocks only when the writer is far behind.
  virtual Sequence append(std::vector<core::Write> group) = 0;

  /// `durable(n)` runs on the writer's thread, in order, once all groups up to n are durable. `failed` runs
  /// at most once, when a write can never succeed or the database is unreachable for too long. The process
  /// must then exit and reload, because the core's memory is ahead of the store.
  struct Callbacks {
    std::function<void(Sequence)> durable;
    std::function<void(Error)> failed;
  };
  /// Starts the writer. Call it once, after load().
  virtual void start(Callbacks callbacks) = 0;
  /// Completes the queued groups and ends the writer. Idempotent.
  virtual void stop() = 0;
};

}  // namespace det::db
