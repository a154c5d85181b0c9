// Owns the contract between the core and what survives a crash: an ordered log of write groups. Two
// implementations (memory for the simulator and tests, PostgreSQL) pass one contract suite.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "master/core/core.h"
#include "master/core/effect.h"

namespace det::db {

/// The number of a write group, from 1, without gaps, within one process.
using Sequence = std::uint64_t;

/// The crash contract:
/// - Groups become durable in the order appended, each whole or not at all.
/// - After a crash the store holds a prefix of the groups appended, at least up to the last one reported
/// durable.
/// - A group is never applied twice in one process; writes are upserts or keyed inserts, so a group that a
/// crash
///   left in doubt may be followed by one that repeats its effect.
class Store {
 public:
  virtual ~Store() = default;

  /// Everything not ended, plus the next ids. Called once, before the first append.
  virtual Result<core::Recovered> load() = 0;

  /// Queues one step's writes as one atomic group; returns at once (blocks only when the writer is far
  /// behind).
  virtual Sequence append(std::vector<core::Write> group) = 0;

  /// `durable(n)` is called (on the writer's thread, in order) when all groups up to n are durable. `failed`
  /// is called at most once, when a write can never succeed or the database stays away too long: the process
  /// must then exit and reload, since the core's memory is ahead of the store.
  struct Callbacks {
    std::function<void(Sequence)> durable;
    std::function<void(Error)> failed;
  };
  virtual void start(Callbacks callbacks) = 0;
  /// Writes what is queued, then ends the writer.
  virtual void stop() = 0;
};

}  // namespace det::db
