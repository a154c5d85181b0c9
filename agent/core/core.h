// State machine of the agent's allocations: step(input, now) → effects. Pure: no clock, files, processes or
// threads. Inputs may repeat or arrive late. An allocation is dropped only when the master sent Forget.
//
//   state                input              next state, effects
//   -                    Start              preparing: Prepare
//   preparing            Prepared           launching: Launch; after a failure or stop, terminated: Conclude
//   launching            Launched           starting (a harness) or running (a command)
//   starting, running    stop               Terminate; KillHard after the grace
//   starting, running    Ended              terminated: Conclude
//   starting, running    StopRequest        none: the master preempts it; ShutDown follows
//   terminated           LogsShipped        report the exit
//   terminated           Forget             gone: Drop, once the log is shipped
//
// A stop is a Kill, a Forget, an expired lease or ShutDown. While preparing it leads to CancelPreparation.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "agent/core/slot_health.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/stop_signal.h"

namespace det::agent {

/// Description of the task to run. Opaque to the core, which passes it on.
struct Order;

/// Phase of an allocation as reported to the master. A command becomes kRunning when it starts. A harness
/// stays kStarting: it attaches to the master itself.
enum class Phase { kPreparing, kStarting, kRunning, kTerminated };

/// End of an allocation.
struct Exit {
  enum class Kind { kSucceeded, kFailed, kLost, kStopped, kOutOfMemory, kStorageFull, kHung };
  Kind kind = Kind::kLost;
  /// Exit code, or 128 + n for signal n.
  int code = 0;
  /// One line for users; after a failure the last lines of output follow.
  std::string message;
  bool operator==(const Exit&) const = default;
};

// Inputs.

/// From the master: start an allocation. A known id is answered with its state.
struct Start {
  AllocationId id;
  std::shared_ptr<const Order> order;
  std::vector<int> slots = {};
};
/// From the master: end an allocation.
struct Kill {
  AllocationId id;
};
/// From the master: the end is recorded, or the allocation is unknown there. Ends it if it still runs.
struct Forget {
  AllocationId id;
};
/// The master accepted the connection. `lease`: silence after which running allocations are ended. `grace`:
/// SIGTERM to SIGKILL.
struct Connected {
  Duration lease;
  Duration grace;
};
/// Any message of the master; renews the lease.
struct MessageReceived {};
struct Disconnected {};  ///< the stream has ended
/// The preparation is over. With `failure` nothing is launched.
struct Prepared {
  AllocationId id;
  std::optional<Exit> failure;
};
/// The supervisor process exists.
struct Launched {
  AllocationId id;
  Phase phase = Phase::kStarting;
};
/// No process of the allocation is left.
struct Ended {
  AllocationId id;
  Exit exit;
};
/// Every line of the log is durable at the master.
struct LogsShipped {
  AllocationId id;
};
/// An allocation left by an earlier agent process: alive (no `exit`) or ended. `stop`: why it was being
/// ended.
struct Found {
  AllocationId id;
  Phase phase = Phase::kStarting;
  std::optional<Exit> stop;
  std::optional<Exit> exit;
  std::vector<int> slots = {};
};
/// Announce that this agent stops, and ShutDown when no allocation runs any more, at the latest after
/// `timeout`. A second one, and one without a timeout, is a ShutDown. With `echoes`, a second one within
/// kSignalEcho is a repetition: an engine signals the agent and the launcher above it, which forwards.
struct StopRequest {
  Duration timeout;
  bool echoes = false;
};
/// The agent takes no new work for this reason, for example a full disk; "": it takes work again.
struct AgentProblem {
  std::string problem;
};
/// End all allocations, then Finish.
struct ShutDown {};
/// Time has passed, see next_deadline().
struct Tick {};

using Input = std::variant<Start, Kill, Forget, Connected, MessageReceived, Disconnected, Prepared, Launched,
                           Ended, LogsShipped, Found, DeviceFault, DeviceCondition, CheckRequest, CheckDone,
                           AgentProblem, StopRequest, ShutDown, Tick>;

// Effects, to be performed in order.

/// Prepare the allocation. Answered by Prepared.
struct Prepare {
  AllocationId id;
  std::shared_ptr<const Order> order;
};
/// Cancel a preparation. Prepared still follows.
struct CancelPreparation {
  AllocationId id;
};
/// Start the supervisor. Answered by Launched or Ended.
struct Launch {
  AllocationId id;
};
/// SIGTERM to the processes, SIGKILL after the grace. `stop` is stored for a later agent process.
struct Terminate {
  AllocationId id;
  Exit stop;
};
/// The supervisor did not execute Terminate: SIGKILL.
struct KillHard {
  AllocationId id;
};
/// Store the exit for a later agent process and ship the rest of the log. Answered by LogsShipped.
struct Conclude {
  AllocationId id;
  Exit exit;
};
/// Send the state to the master if it is connected.
struct Report {
  AllocationId id;
  Phase phase;
  std::optional<Exit> exit;
};
/// Delete everything that belongs to the allocation.
struct Drop {
  AllocationId id;
};
/// Check the device of a slot. Answered by CheckDone.
struct RunCheck {
  int slot = 0;
};
/// The slots out of service have changed, or the master expects a report: store them and send them.
struct ReportSlots {};
/// Send problem() to the master.
struct ReportProblem {};
/// Send Stopping to the master.
struct Announce {};
/// After ShutDown: the agent may exit.
struct Finish {};

using Effect = std::variant<Prepare, CancelPreparation, Launch, Terminate, KillHard, Conclude, Report, Drop,
                            RunCheck, ReportSlots, ReportProblem, Announce, Finish>;

/// When an agent stops by itself, as after a StopRequest.
struct Departure {
  /// The machine is taken away then. The agent stops `stop_timeout` and the time to end processes earlier.
  std::optional<MonoTime> until;
  Duration stop_timeout{};
  /// Time without allocations after which it stops.
  std::optional<Duration> idle;
};

/// State of an allocation as sent in Hello.
struct Held {
  AllocationId id;
  Phase phase;
  std::optional<Exit> exit;
};

/// Not thread-safe: one thread steps it. Total: no input is an error.
class Core {
 public:
  /// `lease` applies until the first Connected and counts from `now`, as does `departure.idle`.
  Core(Duration lease, MonoTime now, Departure departure = {})
      : departure_(departure), lease_(lease), heard_(now), idle_since_(now) {}

  /// Processes an input and returns the effects.
  std::vector<Effect> step(const Input& input, MonoTime now);
  /// Returns when a Tick is due; nothing if only other inputs can change anything.
  std::optional<MonoTime> next_deadline() const;
  /// Returns all allocations, as they are reported when a connection opens.
  std::vector<Held> held() const;
  const SlotHealth& slot_health() const { return slot_health_; }
  /// Why the agent takes no new work; "" when it does.
  const std::string& problem() const { return problem_; }
  /// Number of the latest CheckRequest of this connection.
  std::int64_t check_number() const { return check_number_; }

 private:
  struct Allocation {
    std::vector<int> slots;
    Phase phase = Phase::kPreparing;
    /// The phase before it ended; reported until the exit may be.
    Phase before = Phase::kPreparing;
    /// Launch was issued, its answer is pending.
    bool launching = false;
    std::optional<Exit> stop;  ///< why it is being ended
    std::optional<Exit> exit;  ///< set in phase kTerminated
    bool shipped = false;      ///< its log is durable
    bool reportable = false;   ///< its exit may be reported
    bool forgotten = false;    ///< drop it once its log is shipped
    /// When to send SIGKILL to an unresponsive supervisor.
    std::optional<MonoTime> kill_at;
    /// Report the exit then, even if the log is not durable.
    std::optional<MonoTime> report_at;
  };

  void handle(const Start& input);
  void handle(const Kill& input);
  void handle(const Forget& input);
  void handle(const Connected& input);
  void handle(const MessageReceived&) { heard_ = now_; }
  void handle(const Disconnected&) { connected_ = false; }
  void handle(const Prepared& input);
  void handle(const Launched& input);
  void handle(const Ended& input);
  void handle(const LogsShipped& input);
  void handle(const Found& input);
  void handle(const DeviceFault& input) { report_slots(slot_health_.handle(input, now_)); }
  void handle(const DeviceCondition& input) { report_slots(slot_health_.handle(input, now_)); }
  void handle(const CheckRequest& input);
  void handle(const CheckDone& input) { report_slots(slot_health_.handle(input, now_)); }
  void handle(const AgentProblem& input);
  void handle(const StopRequest& input);
  void handle(const ShutDown& input);
  void handle(const Tick&) {}

  // Null if unknown.
  Allocation* find(const AllocationId& id);
  // Starts to end an allocation; no effect if it is already ending.
  void stop(const AllocationId& id, Allocation& allocation, Exit why);
  // Ends an allocation; the reason of a stop replaces the exit of the process.
  void end(const AllocationId& id, Allocation& allocation, Exit exit);
  // Enters kTerminated.
  void conclude(const AllocationId& id, Allocation& allocation, Exit exit);
  // Emits a Report if connected and the state may be reported.
  void report(const AllocationId& id, const Allocation& allocation);
  void report_slots(bool expected);
  // Slots of allocations that have not ended.
  std::set<int> busy_slots() const;
  // Slots of all allocations. A slot with a fault stays out of service until the master has the exits of its
  // allocations: their cause may be the fault.
  std::set<int> held_slots() const;
  // Lease, SIGKILL and report deadlines.
  void check_deadlines();
  // Latest time of ShutDown, so that all processes have ended before the machine is taken away.
  std::optional<MonoTime> leave_by() const;
  // Time at which the agent announces its stop without a StopRequest.
  std::optional<MonoTime> departs_at() const;
  // Begins to stop: announces it, and sets the time of ShutDown.
  void begin_stop(MonoTime by);
  // Begins the checks of devices that are due.
  void check_slots();
  // Stops before the machine is taken away, and when idle.
  void check_departure();
  // Shuts down when nothing is left to wait for.
  void check_stop_request();
  // Finishes a shutdown.
  void check_shutdown();
  bool all_terminated() const;

  Departure departure_;
  std::map<AllocationId, Allocation> allocations_;
  SlotHealth slot_health_;
  std::int64_t check_number_ = 0;
  std::string problem_;
  // Changes while the master could not be notified.
  bool slots_changed_ = false, problem_changed_ = false;
  std::vector<Effect> effects_;
  Duration lease_;
  Duration grace_ = kDefaultKillGrace;
  MonoTime heard_;
  MonoTime now_;
  bool connected_ = false;
  /// Begin of the time without allocations; nothing while there are any.
  std::optional<MonoTime> idle_since_;
  std::optional<MonoTime> asked_at_;  ///< the first StopRequest
  /// The stop is announced: ShutDown then.
  std::optional<MonoTime> stop_by_;
  bool shutting_down_ = false;
  bool finished_ = false;
  /// Finish then, even without the master's Forget.
  std::optional<MonoTime> finish_at_;
};

}  // namespace det::agent
