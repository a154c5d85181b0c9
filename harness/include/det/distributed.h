// Owns DistributedContext: which process of a trial this is, and small exchanges between its processes. No
// LibTorch.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace det {

/// Objects keep the order in which their keys were written.
using Json = nlohmann::ordered_json;

/// Where a process stands. `rank` counts all processes of the trial, `local_rank` those of one machine,
/// `cross_rank` the machines.
struct RankInfo {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  int cross_rank = 0, cross_size = 1;
  std::string chief_address = "127.0.0.1";  ///< of rank 0's machine
  int chief_port = 0;                       ///< on which rank 0 listens for the others
};

/// From RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, MASTER_ADDR and
/// MASTER_PORT, as torchrun and det-launch set them; one process when there is no WORLD_SIZE (an error on a
/// cluster where the trial's slots are on several agents, DET_NUM_NODES: each would train the whole). Where
/// torchrun itself listens on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True), chief_port is the next one.
/// Throws std::invalid_argument with every variable that is missing or does not fit the others.
RankInfo rank_info_from_environment();

/// Exchanges of small values (JSON) between all ranks: each call must be made by every rank, in the same
/// order, from one thread. With one process they return at once. When a process dies, every rank that waits
/// in a call or makes one later gets a std::runtime_error "rank 2 (on host a) is gone", within milliseconds;
/// there is no timeout on slow ranks. A rank that makes another call than rank 0 ends them with an error
/// naming both. After an error no call succeeds.
///
/// A star of TCP connections around rank 0. Strangers are refused: by a secret of this launch when
/// DET_LAUNCH_TOKEN or TORCHELASTIC_RUN_ID is set (its digest is compared), by world size, and a rank is let
/// in once. Values are not encrypted: for a private network.
class DistributedContext {
 public:
  /// Joins the others: rank 0 listens, the rest connect within `timeout_seconds`. Throws std::runtime_error
  /// naming the ranks that did not come, or why rank 0 refused this one.
  explicit DistributedContext(const RankInfo& info, int timeout_seconds = 600);
  DistributedContext();  ///< one process
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

  /// All values in the order of ranks on the chief; empty elsewhere.
  std::vector<Json> gather(const Json& value);
  /// All values in the order of ranks, on every rank.
  std::vector<Json> allgather(const Json& value);
  /// The chief's value, on every rank; the argument of the others is ignored.
  Json broadcast(const Json& value);
  /// Every rank has come here.
  void barrier();
  // The same among the processes of one machine, whose chief is local rank 0. They too must be called by
  // every rank.
  std::vector<Json> gather_local(const Json& value);
  std::vector<Json> allgather_local(const Json& value);
  Json broadcast_local(const Json& value);

  /// The same on bytes, for the library: no size limit but memory.
  std::vector<std::string> allgather_bytes(const std::string& value);
  std::vector<std::string> allgather_local_bytes(const std::string& value);
  std::string broadcast_bytes(const std::string& value);

  // For transports that wait for other ranks by other ways. From any thread.
  /// "" while `rank` takes part; then "rank 2 (on host a) is gone" (its process ended or cannot be reached)
  /// or "rank 2 (on host a) has left" (its context was destroyed).
  std::string absence(int rank) const;
  /// The same of the rank that was first found gone; "" when none was.
  std::string first_gone() const;
  /// For finding the cause of a failed exchange: waits up to `seconds` for a rank to be found gone and
  /// describes it, else the first that left, else "".
  std::string await_absence(double seconds) const;
  /// Numeric address at which the other machines reach this one; the loopback when there is one machine.
  std::string address() const;

 private:
  class Star;
  RankInfo info_;
  std::unique_ptr<Star> star_;  // null for one process
};

}  // namespace det
