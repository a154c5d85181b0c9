// The agent: one loop thread turns events (master, ends of processes, finished jobs, time) into inputs of the
// core and performs the effects of the core.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>

#include "agent/config.h"
#include "agent/core/core.h"
#include "agent/data_dir.h"
#include "agent/disk_state.h"
#include "agent/gpu/gpu_monitor.h"
#include "agent/gpu/mps.h"
#include "agent/master_link/join.h"
#include "agent/master_link/link.h"
#include "agent/master_link/log_ship.h"
#include "agent/master_link/tunnels.h"
#include "agent/ports.h"
#include "agent/prepare.h"
#include "agent/runtime.h"
#include "agent/storage_jobs.h"
#include "agent/task_sandbox.h"
#include "agent/warm_start.h"
#include "agent/watcher.h"
#include "common/base/queue.h"
#include "common/base/result.h"
#include "common/base/stop_signal.h"
#include "common/client/grpc_keepalive.h"

namespace det::agent {

/// One agent process. Must be created before any other thread exists, see Watcher::start.
class Agent {
 public:
  /// Detects devices, locks the data directory, establishes trust and opens the channel to the master. Blocks
  /// for seconds, longer when it joins with a token. `prefix`: the installation, which contains bin/ and
  /// share/det/.
  static Result<std::unique_ptr<Agent>> create(Settings settings, const std::string& prefix);
  ~Agent();

  /// Runs until SIGTERM or SIGINT, then ends its allocations and returns. Allocations of an earlier agent are
  /// taken over at the start.
  void run();

 private:
  // The process with this key of the Watcher has ended.
  struct ProcessEnded {
    std::uint64_t key = 0;
  };
  // The directory of this allocation is deleted.
  struct Removed {
    AllocationId id;
  };
  /// A trial was compiled without the precompiled header.
  struct HeaderMissing {};
  using Event = std::variant<Input, LinkEvent, ProcessEnded, Removed, StorageAnswer, std::vector<GpuReading>,
                             HeaderMissing>;
  using Events = Queue<Event>;

  /// Connection to the master.
  struct MasterLink {
    MasterTrust trust;
    std::shared_ptr<grpc::Channel> channel;
  };
  Agent(Settings settings, DataDir data, std::vector<Device> devices, const std::string& prefix,
        std::shared_ptr<Events> events, std::unique_ptr<Watcher> watcher, const MasterLink& master,
        SandboxReport sandbox, std::unique_ptr<Mps> mps);
  /// Turns the allocations that an earlier agent left into inputs of the core.
  void reattach_allocations();
  /// Precompiles LibTorch's header in the background. No effect while that goes on.
  void prepare_header();
  // Steps the core and performs its effects.
  void feed(const Input& input);
  // Whether run() may return.
  bool done(MonoTime now) const;

  // Handlers of events, on the loop thread.
  void take(const Input& input);
  void take(const LinkEvent& event);
  void take(const ProcessEnded& event);
  void take(const Removed& event) {
    jobs_.erase(event.id);
    uids_.release(event.id);
  }
  void take(const StorageAnswer& answer);
  void take(const std::vector<GpuReading>& readings);
  void take(const HeaderMissing&) { prepare_header(); }
  // Handlers of the master's commands.
  void execute(const v1::AgentCommand& command);
  void start(const v1::StartAllocation& command);
  void work(const v1::StorageWork& command);
  void open_tunnel(const v1::OpenTunnel& command);
  // First message of a stream: identity, devices, and the state of all allocations.
  v1::Hello hello() const;

  // Effects of the core.
  void perform(const Prepare& effect);
  void perform(const CancelPreparation& effect);
  void perform(const Launch& effect);
  void perform(const Terminate& effect) { runtime_.terminate(effect.id, effect.stop); }
  void perform(const KillHard& effect) { runtime_.kill_hard(effect.id); }
  void perform(const Conclude& effect);
  void perform(const Report& effect);
  void perform(const Drop& effect);
  void perform(const RunCheck& effect) { gpus_.check(effect.slot); }
  void perform(const ReportSlots&);
  void perform(const ReportProblem&);
  void perform(const Announce&);
  void perform(const Finish&);

  /// Runs `work` on a thread of its own and pushes its result as an event. One job at a time for an
  /// allocation.
  void begin_job(const AllocationId& id, std::function<Event(std::stop_token)> work);

  const Settings settings_;
  const DataDir data_;
  // Shared with callbacks that may outlive this object.
  const std::shared_ptr<Events> events_;
  const std::unique_ptr<Watcher> watcher_;
  const PortBlock ports_;
  const SandboxReport sandbox_;
  const std::unique_ptr<Mps> mps_;               ///< null unless slots share GPUs
  const std::unique_ptr<WarmStart> warm_start_;  ///< null if trials cannot be forked
  const Site site_;
  DiskState disk_;
  TaskUids uids_;
  Runtime runtime_;
  Renewal renewal_;
  LogShip logs_;
  Tunnels tunnels_;
  StorageJobs storage_jobs_;
  GpuMonitor gpus_;
  GrpcKeepAlive keepalive_;
  Link link_;
  Core core_;
  std::string cluster_id_;
  Duration grace_ = kDefaultKillGrace;
  /// Set by Finish: deadline for the orderly end of the stream.
  std::optional<MonoTime> exit_at_;
  // Declared last: the jobs must end before the members that they use.
  std::map<AllocationId, std::jthread> jobs_;
  std::atomic<bool> header_busy_ = false;
  std::jthread header_job_;
};

}  // namespace det::agent
