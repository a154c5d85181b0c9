// DistributedContext: the ranks of a trial's processes and small exchanges between them. Independent of
// LibTorch.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace det {

/// JSON value. Objects preserve insertion order.
using Json = nlohmann::ordered_json;

/// Position of a process in its trial. `rank` counts all processes, `local_rank` those of one machine, and
/// `cross_rank` the machines.
struct RankInfo {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  int cross_rank = 0, cross_size = 1;
  std::string chief_address = "127.0.0.1";  ///< host of rank 0
  int chief_port = 0;                       ///< port on which rank 0 listens
};

/// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, MASTER_ADDR and
/// MASTER_PORT, as set by torchrun and det-launch. Without WORLD_SIZE the result is a single process; on a
/// cluster where the trial's slots are on several agents (DET_NUM_NODES > 1) that is an error, because each
/// agent would train the whole trial. When torchrun itself listens on MASTER_PORT
/// (TORCHELASTIC_USE_AGENT_STORE=True), chief_port is MASTER_PORT + 1. Throws std::invalid_argument listing
/// every variable that is missing or inconsistent.
RankInfo rank_info_from_environment();

/// Collective exchanges of small JSON values between the ranks of a trial.
///
/// Every rank must make the same calls in the same order, from one thread. Calls block until the other ranks
/// have made them; there is no timeout for slow ranks. With a single process they return at once. When a
/// process dies, every rank that waits in a call or makes one later gets a std::runtime_error such as "rank 2
/// (on host a) is gone", within milliseconds. Mismatched calls fail with an error that names both. After an
/// error all further calls fail.
///
/// The transport is a star of TCP connections around rank 0. Connections of other programs are rejected by
/// the digest of a secret of the launch (DET_LAUNCH_TOKEN or TORCHELASTIC_RUN_ID, if set), by the world size,
/// and by admitting each rank once. Values are not encrypted: use a private network.
class DistributedContext {
 public:
  /// Connects the ranks: rank 0 listens, the others connect within `timeout_seconds`. Throws
  /// std::runtime_error naming the ranks that are missing, or the reason why rank 0 rejected this one.
  explicit DistributedContext(const RankInfo& info, int timeout_seconds = 600);
  /// A context of a single process.
  DistributedContext();
  ~DistributedContext();
  DistributedContext(const DistributedContext&) = delete;

  int rank() const { return info_.rank; }
  int size() const { return info_.size; }
  int local_rank() const { return info_.local_rank; }
  int local_size() const { return info_.local_size; }
  int cross_rank() const { return info_.cross_rank; }
  int cross_size() const { return info_.cross_size; }
  bool is_chief() const { return info_.rank == 0; }
  const RankInfo& info() const { return info_; }

  /// Returns all values in rank order on the chief, and an empty vector elsewhere.
  std::vector<Json> gather(const Json& value);
  /// Returns all values in rank order, on every rank.
  std::vector<Json> allgather(const Json& value);
  /// Returns the chief's value on every rank. The argument of other ranks is ignored.
  Json broadcast(const Json& value);
  /// Returns when every rank has called it.
  void barrier();
  /// The same among the processes of one machine, with local rank 0 as its chief. Every rank of the trial
  /// must call them.
  std::vector<Json> gather_local(const Json& value);
  std::vector<Json> allgather_local(const Json& value);
  Json broadcast_local(const Json& value);

  /// The same for bytes, for use by the library. Sizes are limited by memory only.
  std::vector<std::string> allgather_bytes(const std::string& value);
  std::vector<std::string> allgather_local_bytes(const std::string& value);
  std::string broadcast_bytes(const std::string& value);

  /// Absence of a rank: "" while it takes part; "rank 2 (on host a) is gone" when its process has ended or is
  /// unreachable; "rank 2 (on host a) has left" when its context was destroyed. For transports with other
  /// means of waiting. Thread-safe.
  std::string absence(int rank) const;
  /// absence() of the rank that was found gone first; "" when there is none. Thread-safe.
  std::string first_gone() const;
  /// Finds the cause of a failed exchange: waits up to `seconds` for a rank to be found gone and returns its
  /// absence; otherwise that of the first rank that has left; otherwise "". Thread-safe.
  std::string await_absence(double seconds) const;
  /// Numeric address at which other machines reach this one; the loopback address on a single machine.
  /// Thread-safe.
  std::string address() const;

 private:
  class Star;
  RankInfo info_;
  std::unique_ptr<Star> star_;  // null for a single process
};

}  // namespace det
