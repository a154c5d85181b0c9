// The simulated master: the real core over the memory store behind a loop like master/loop, with connections
// to agents, harnesses and users. It can crash between any two events.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "master/core/core.h"
#include "tests/sim/boundary.h"
#include "tests/sim/checker.h"
#include "tests/sim/engine.h"
#include "tests/sim/memory_store.h"
#include "tests/sim/plan.h"

namespace det::sim {

using Answer = Result<core::ReplyValue>;

class Master {
 public:
  Master(Engine& engine, const Plan& plan, Checker& checker);

  bool up() const { return core_.has_value(); }
  /// Number of starts. Messages to an earlier life are dropped.
  int life() const { return life_; }
  const core::Core* core() const { return core_ ? &*core_ : nullptr; }
  const MemoryDisk& disk() const { return disk_; }

  void start();
  void crash();
  /// Delays durability of all writes by `duration`.
  void stall_store(Duration duration);

  /// Dropped while the master is down. `answer` is called once the effects are durable, and never after a
  /// crash.
  void submit(core::Input input, std::function<void(Answer)> answer = nullptr);

  // Connections of agents. A session lives until it is closed here or the master crashes.
  using AgentSink = std::function<void(const core::Send&)>;
  std::uint64_t open_agent(AgentSink sink);
  bool agent_is_open(std::uint64_t session) const { return agent_links_.contains(session); }
  void close_agent(const AgentId& agent, std::uint64_t session);

  /// Receives SubmitPilot and CancelPilot.
  void on_engine(AgentSink sink) { engine_link_ = std::move(sink); }

  // Connections of harnesses, which receive PreemptAllocation.
  void open_harness(const AllocationId& allocation, std::uint64_t session, std::function<void()> preempt);
  void close_harness(const AllocationId& allocation, std::uint64_t session);

 private:
  struct ReleasedBatch {
    db::Sequence after = 0;
    std::vector<core::Send> sends;
    std::vector<core::Reply> replies;
  };
  void wake(Duration delay);
  void process();
  void emit(core::Effects effects);
  void flush_later();
  void release();
  void deliver(const core::Send& send);
  void deliver(core::Reply& reply);
  void watch_deadline();
  core::Now now() const;

  Engine& engine_;
  const Plan& plan_;
  Checker& checker_;
  Boundary boundary_;
  MemoryDisk disk_;
  std::unique_ptr<MemoryStore> store_;
  std::optional<core::Core> core_;
  int life_ = 0;

  std::vector<core::Input> inbox_;
  std::vector<ReleasedBatch> outbox_;
  db::Sequence appended_ = 0, durable_ = 0;
  bool waking_ = false, flushing_ = false;
  MonoTime stalled_until_;
  std::optional<MonoTime> watched_;
  core::ReplyTo next_reply_ = 1;
  std::map<core::ReplyTo, std::function<void(Answer)>> waiting_;
  std::uint64_t next_session_ = 1;
  std::map<std::uint64_t, AgentSink> agent_links_;
  AgentSink engine_link_;
  std::map<AllocationId, std::pair<std::uint64_t, std::function<void()>>> harness_links_;
};

}  // namespace det::sim
