// A simulated machine with an agent. Held allocations survive restarts of the agent, and processes outlive
// the agent. Without contact to the master for a lease, the agent ends its processes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "tests/sim/process.h"

namespace det::sim {

class Machine : public std::enable_shared_from_this<Machine> {
 public:
  /// `instance` distinguishes machines with the same agent name.
  Machine(Engine& engine, Master& master, Checker& checker, const Plan& plan, AgentId name,
          std::string instance, int slots, bool ephemeral = false);

  void start();

  // Faults.
  void cut(Duration duration);    ///< No traffic; messages in flight are lost.
  void stall(Duration duration);  ///< Traffic arrives late.
  /// The agent announces its stop. After `patience` the machine restarts. An ephemeral one leaves instead,
  /// and a machine that holds nothing takes its name.
  void stop_agent(Duration patience, Duration away);
  /// The agent takes no new work for a while.
  void trouble(Duration duration);
  /// The device of a slot has a fault for a while, and until the exits of processes on it are forgotten. With
  /// `fatal` the process on it fails.
  void trouble_slot(Duration duration, bool fatal);
  void restart_agent(Duration away);
  void reboot(Duration away);
  void die();  ///< Permanent.

  const AgentId& name() const { return name_; }
  bool dead() const { return dead_; }
  bool holds_anything() const { return !held_.empty(); }
  std::vector<std::shared_ptr<Process>> processes() const;

 private:
  struct Held {
    core::StartAllocation start;
    core::AllocationState state = core::AllocationState::kPulling;
    std::optional<core::Exit> exit;
    std::shared_ptr<Process> process;
    bool killed = false;
    bool has(int slot) const;  ///< One of its part's slots.
  };
  /// One connection. Messages of an abandoned link may still reach the master, never the agent.
  struct Link {
    explicit Link(Engine& engine) : up(engine), down(engine) {}
    Pipe up, down;
    /// Set when the master has received the hello.
    std::uint64_t session = 0;
    int life = 0;  ///< Life of the master that it leads to.
    bool accepted = false;
    MonoTime master_heard, agent_heard;
  };
  using LinkPtr = std::shared_ptr<Link>;

  void connect();
  void reconnect();
  void drop_link();
  void hello(const LinkPtr& link, const std::vector<core::HeldAllocation>& held, MonoTime sent,
             std::int64_t number);
  void welcomed(const LinkPtr& link, const Answer& answer, MonoTime sent);
  void watch_edge(const LinkPtr& link);
  void announce();
  void send_problem();
  void send_slots();
  void check(const core::CheckSlot& send);
  /// Ends a fault of a slot after this time.
  void repair_slot(int slot, Duration after);
  std::map<int, std::string> slot_problems() const;
  void leave(Duration away);
  void heartbeat(const LinkPtr& link);
  void renew(MonoTime sent);
  void watch_lease();
  void command(const core::Send& send);
  void begin(const core::StartAllocation& start);
  void pulled(const AllocationId& id);
  core::Exit build(const core::StartAllocation& start);
  const Job& program_of(const core::StartAllocation& start) const;
  void kill(const AllocationId& id);
  void exited(const AllocationId& id, core::Exit exit);
  void tell(const AllocationId& id);
  std::vector<core::HeldAllocation> held() const;
  bool current(const LinkPtr& link) const { return link_ == link && !dead_; }

  Engine& engine_;
  Master& master_;
  Checker& checker_;
  const Plan& plan_;
  AgentId name_;
  std::string instance_;
  std::string problem_;        ///< As in AgentProblem.
  std::multiset<int> faulty_;  ///< Slots with a fault, once for each.
  std::set<int> checked_;      ///< Slots whose device is being checked.
  std::int64_t checks_ = 0;    ///< Number of the latest CheckSlot of this link.
  int slots_;
  const bool ephemeral_;
  bool dead_ = false, agent_up_ = false, stopping_ = false, connecting_ = false, watching_lease_ = false;
  int agent_life_ = 0, boot_ = 1;
  std::int64_t connections_ = 0;
  MonoTime cut_until_, lease_from_;
  LinkPtr link_;
  std::map<AllocationId, Held> held_;
};

}  // namespace det::sim
