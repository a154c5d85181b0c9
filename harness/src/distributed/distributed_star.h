// Connections of a DistributedContext. Each rank has two connections to rank 0: one for values, and one for
// presence messages only, which a thread watches while the caller waits on the first.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "det/distributed.h"

namespace det {

/// A rank as seen from this one: its place, and the two connections to it. Ranks other than 0 have
/// connections to rank 0 only.
struct Peer {
  std::string host;
  int local_rank = 0, cross_rank = 0;
  UniqueFd values, news;
};

/// Connects the ranks. Returns one entry per rank with its host and place; entry 0 of the chief, and all
/// entries but 0 on the other ranks, have no connections. Blocks. Throws as DistributedContext's constructor.
std::vector<Peer> join_star(const RankInfo& info, Duration timeout);

/// The star around rank 0. Collectives are called from one thread; presence queries from any.
class DistributedContext::Star {
 public:
  /// Collective calls, sent along to detect mismatches.
  enum class Call : std::uint32_t {
    kGather,
    kAllgather,
    kBroadcast,
    kBarrier,
    kGatherLocal,
    kAllgatherLocal,
    kBroadcastLocal
  };

  /// Connects the ranks and starts the watcher. Errors as join_star().
  Star(const RankInfo& info, Duration timeout);
  ~Star();

  /// As the functions of DistributedContext with the same names.
  std::vector<std::string> gather(const std::string& value);
  std::vector<std::string> allgather(Call call, const std::string& value);
  std::string broadcast(const std::string& value);
  std::vector<std::string> gather_local(const std::string& value);
  std::vector<std::string> allgather_local(const std::string& value);
  std::string broadcast_local(const std::string& value);

  std::string absence(int rank) const;
  std::string first_gone() const;
  std::string first_absence() const;  ///< gone if any rank is, else left
  std::string address() const;

 private:
  /// State of a rank: taking part, context destroyed, or process ended.
  enum class Presence : std::uint32_t { kHere, kLeft, kGone };
  /// A presence message.
  struct News {
    std::uint32_t rank, presence;
  };

  bool chief() const { return info_.rank == 0; }
  /// Returns all values in rank order on the chief; on other ranks sends the value and returns nothing.
  std::vector<std::string> collect(Call call, const std::string& value);
  /// The values of the ranks on machine `cross_rank`.
  std::vector<std::string> of_machine(const std::vector<std::string>& values, int cross_rank) const;
  /// Transfers of one value; both throw when the connection has failed, or the other rank made another call.
  void send(int rank, Call call, const std::string& value);
  std::string receive(int rank, Call call);
  /// Throws with the first absence; see the implementation for the race it waits out.
  [[noreturn]] void fail();

  /// The watcher thread: reads presence messages until stop_ is signaled.
  void watch();
  bool read_news(int rank);
  /// Records an absence once, forwards it (chief), and for a crash shuts the value connections down.
  void mark(int rank, Presence presence);
  void notify(int rank, News news);
  std::string describe(int rank, Presence presence) const;

  const RankInfo info_;
  std::vector<Peer> peers_;
  std::vector<std::atomic<Presence>> presence_;
  /// First rank found gone and first rank that left; -1 for none.
  std::atomic<int> first_gone_{-1}, first_left_{-1};
  /// Number of absences, for waiting on a change.
  std::atomic<int> absences_{0};
  /// Number of collectives so far; equal on all ranks.
  std::uint32_t calls_ = 0;
  /// Event that ends the watcher.
  UniqueFd stop_;
  std::thread watcher_;
};

}  // namespace det
