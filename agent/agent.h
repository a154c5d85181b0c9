// Owns the agent as a whole: one loop thread that turns what comes (master, ends of processes, finished jobs,
// time) into inputs of the core and performs the core's effects.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "agent/config.h"
#include "agent/core/core.h"
#include "agent/data_dir.h"
#include "agent/join.h"
#include "agent/link.h"
#include "agent/log_ship.h"
#include "agent/ports.h"
#include "agent/prepare.h"
#include "agent/runtime.h"
#include "agent/watcher.h"
#include "base/kill_grace.h"
#include "base/queue.h"
#include "base/result.h"
#include "wire/awake.h"

namespace det::agent {

class Agent {
 public:
  /// `prefix` is the installation (bin/ and share/det/ are in it).
  static Result<std::unique_ptr<Agent>> create(Settings settings, const std::string& prefix);
  ~Agent();

  /// Until SIGTERM or SIGINT: ends its allocations first.
  void run();

 private:
  struct ProcessEnded {
    std::uint64_t key = 0;
  };
  struct Removed {
    AllocationId id;
  };
  using Event = std::variant<Input, LinkEvent, ProcessEnded, Removed, v1::StorageDone>;
  using Events = Queue<Event>;

  /// How it reaches the master.
  struct Way {
    MasterTrust trust;
    std::shared_ptr<grpc::Channel> channel;
  };
  Agent(Settings settings, DataDir data, std::vector<Device> devices, const std::string& prefix,
        std::shared_ptr<Events> events, std::unique_ptr<Watcher> watcher, const Way& way);
  /// What an earlier agent left becomes inputs of the core.
  void take_up();
  void feed(const Input& input);
  bool done(MonoTime now) const;

  void take(const Input& input);
  void take(const LinkEvent& event);
  void take(const ProcessEnded& event);
  void take(const Removed& event) { jobs_.erase(event.id); }
  void take(const v1::StorageDone& done);
  void obey(const v1::AgentCommand& command);
  void start(const v1::StartAllocation& command);
  void work(const v1::StorageWork& command);
  v1::Hello hello() const;

  void perform(const Prepare& effect);
  void perform(const CancelPreparation& effect);
  void perform(const Launch& effect);
  void perform(const Terminate& effect) { runtime_.terminate(effect.id, effect.stop); }
  void perform(const KillHard& effect) { runtime_.kill_hard(effect.id); }
  void perform(const Conclude& effect);
  void perform(const Report& effect);
  void perform(const Drop& effect);
  void perform(const Finish&);

  /// Runs `work` on a thread of its own; one at a time per allocation. Its result is pushed as an event.
  void begin_job(const AllocationId& id, std::function<Event(std::stop_token)> work);

  const Settings settings_;
  const DataDir data_;
  // Shared with callbacks that may come after our end.
  const std::shared_ptr<Events> events_;
  const std::unique_ptr<Watcher> watcher_;
  const PortBlock ports_;
  const Site site_;
  Runtime runtime_;
  Renewal renewal_;
  LogShip logs_;
  Awake awake_;
  Link link_;
  Core core_;
  std::string cluster_id_;
  Duration grace_ = kDefaultKillGrace;
  std::optional<MonoTime> leave_at_;  ///< set by Finish: when we go even without the stream's orderly end
  std::map<AllocationId, std::jthread> jobs_;
  std::map<std::int64_t, std::jthread> storage_jobs_;  ///< by the number of the master's order
};

}  // namespace det::agent
