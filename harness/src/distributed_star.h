// Owns the connections of a DistributedContext: two to each rank around rank 0, one for values and one on
// which nothing but the news of absent ranks passes, so that a thread can watch it while the caller waits on
// the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "det/distributed.h"

namespace det {

/// What rank 0 learns of a rank when it joins, and the two connections to it. On the others only entry 0 has
/// connections.
struct Peer {
  std::string host;
  int local_rank = 0, cross_rank = 0;
  UniqueFd values, news;
};

/// Entry 0 of the chief, and on the others all but entry 0, have no connections; hosts and places are known
/// of all. Throws as DistributedContext's constructor.
std::vector<Peer> join_star(const RankInfo& info, Duration timeout);

class DistributedContext::Star {
 public:
  enum class Call : std::uint32_t {
    kGather,
    kAllgather,
    kBroadcast,
    kBarrier,
    kGatherLocal,
    kAllgatherLocal,
    kBroadcastLocal
  };

  Star(const RankInfo& info, Duration timeout);
  ~Star();

  std::vector<std::string> gather(const std::string& value);
  std::vector<std::string> allgather(Call call, const std::string& value);
  std::string broadcast(const std::string& value);
  std::vector<std::string> gather_local(const std::string& value);
  std::vector<std::string> allgather_local(const std::string& value);
  std::string broadcast_local(const std::string& value);

  std::string absence(int rank) const;
  std::string first_gone() const;
  std::string first_absence() const;  ///< gone if any, else left
  std::string address() const;

 private:
  enum class Presence : std::uint32_t { kHere, kLeft, kGone };
  struct News {
    std::uint32_t rank, presence;
  };

  bool chief() const { return info_.rank == 0; }
  /// All values on the chief, in the order of ranks; elsewhere sends and returns nothing.
  std::vector<std::string> collect(Call call, const std::string& value);
  std::vector<std::string> of_machine(const std::vector<std::string>& values, int cross_rank) const;
  void send(int rank, Call call, const std::string& value);
  std::string receive(int rank, Call call);
  [[noreturn]] void fail();

  void watch();
  bool read_news(int rank);
  void mark(int rank, Presence presence);
  void tell(int rank, News news);
  std::string describe(int rank, Presence presence) const;

  const RankInfo info_;
  std::vector<Peer> peers_;
  std::vector<std::atomic<Presence>> presence_;
  std::atomic<int> first_gone_{-1}, first_left_{-1};
  std::atomic<int> absences_{0};
  std::uint32_t calls_ = 0;
  UniqueFd stop_;
  std::thread watcher_;
};

}  // namespace det
