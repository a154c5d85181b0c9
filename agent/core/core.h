// Owns what the agent knows of its allocations and what it decides about them: step(input, now) → effects.
// Pure: no clock, no files, no processes, no threads. Every input may repeat or come late; none makes it
// forget an allocation that the master has not told it to forget.
//
//   Start ──▶ preparing ──Prepared──▶ launching ──Launched──▶ starting / running ──Ended──▶ terminated
//   ──Forget──▶ gone
//                 │ failure, stop                                  │ stop: Terminate, after the grace
//                 KillHard └────────────────────────────────────────────────┴──▶ terminated
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/kill_grace.h"

namespace det::agent {

/// What to run; the core passes it along and never looks inside.
struct Order;

/// As the master is told. kRunning: a command that never attaches; a harness stays kStarting (it attaches
/// itself).
enum class Phase { kPreparing, kStarting, kRunning, kTerminated };

struct Exit {
  enum class Kind { kSucceeded, kFailed, kLost, kStopped, kOutOfMemory, kStorageFull, kHung };
  Kind kind = Kind::kLost;
  int code = 0;         ///< exit code, 128 + n for signal n
  std::string message;  ///< one line for people; below it, of what failed, the last that it said
  bool operator==(const Exit&) const = default;
};

// ---- inputs
// ----------------------------------------------------------------------------------------------------

/// From the master. A known id is answered with its state.
struct Start {
  AllocationId id;
  std::shared_ptr<const Order> order;
};
struct Kill {
  AllocationId id;
};
struct Forget {
  AllocationId id;
};
/// The master accepted us. `lease`: silence after which we end what runs; `grace`: SIGTERM to SIGKILL.
struct Connected {
  Duration lease;
  Duration grace;
};
struct Heard {};  ///< any word of the master
struct Disconnected {};
/// Preparation is over; with `failure` nothing can be launched.
struct Prepared {
  AllocationId id;
  std::optional<Exit> failure;
};
/// Its process exists.
struct Launched {
  AllocationId id;
  Phase phase = Phase::kStarting;
};
/// Nothing of it is left.
struct Ended {
  AllocationId id;
  Exit exit;
};
/// Every line of its log is durable at the master.
struct LogsShipped {
  AllocationId id;
};
/// Left by an earlier life of the agent: a live process (`exit` absent) or an end. `stop` is why it was being
/// ended.
struct Found {
  AllocationId id;
  Phase phase = Phase::kStarting;
  std::optional<Exit> stop;
  std::optional<Exit> exit;
};
/// End everything, then Finish.
struct ShutDown {};
struct Tick {};

using Input = std::variant<Start, Kill, Forget, Connected, Heard, Disconnected, Prepared, Launched, Ended,
                           LogsShipped, Found, ShutDown, Tick>;

// ---- effects, to be performed in order
// ---------------------------------------------------------------------------

struct Prepare {
  AllocationId id;
  std::shared_ptr<const Order> order;
};
/// Answered by Prepared all the same.
struct CancelPreparation {
  AllocationId id;
};
/// Answered by Launched or Ended.
struct Launch {
  AllocationId id;
};
/// SIGTERM to its processes, SIGKILL after the grace; `stop` is kept beside it for the agent's next life.
struct Terminate {
  AllocationId id;
  Exit stop;
};
/// The polite way did not work: SIGKILL to all of it.
struct KillHard {
  AllocationId id;
};
/// Keep the exit for the agent's next life, ship what is left of the log, answer LogsShipped.
struct Conclude {
  AllocationId id;
  Exit exit;
};
/// Tell the master, if it is there.
struct Report {
  AllocationId id;
  Phase phase;
  std::optional<Exit> exit;
};
/// Delete all that is kept of it.
struct Drop {
  AllocationId id;
};
/// After ShutDown: nothing is left to wait for.
struct Finish {};

using Effect =
    std::variant<Prepare, CancelPreparation, Launch, Terminate, KillHard, Conclude, Report, Drop, Finish>;

struct Held {
  AllocationId id;
  Phase phase;
  std::optional<Exit> exit;
};

class Core {
 public:
  /// `lease` holds until the first Connected; it counts from `now`.
  Core(Duration lease, MonoTime now) : lease_(lease), heard_(now) {}

  std::vector<Effect> step(const Input& input, MonoTime now);
  /// When a Tick is wanted; nothing when only inputs can change anything.
  std::optional<MonoTime> next_deadline() const;
  /// Everything held, as the master is told when we connect.
  std::vector<Held> held() const;

 private:
  struct Allocation {
    Phase phase = Phase::kPreparing;
    Phase before = Phase::kPreparing;  ///< the phase it ended in
    bool launching = false;            ///< Launch is said, its answer not heard
    std::optional<Exit> stop;          ///< why it is being ended
    std::optional<Exit> exit;          ///< set when phase is kTerminated
    bool shipped = false;              ///< its log is durable
    bool told = false;                 ///< its end may be told to the master
    bool forgotten = false;            ///< drop it once its log is shipped
    std::optional<MonoTime> kill_at;   ///< SIGKILL, the supervisor being deaf
    std::optional<MonoTime> tell_at;   ///< report the exit then, even if its log is not durable
  };

  void handle(const Start& input);
  void handle(const Kill& input);
  void handle(const Forget& input);
  void handle(const Connected& input);
  void handle(const Heard&) { heard_ = now_; }
  void handle(const Disconnected&) { connected_ = false; }
  void handle(const Prepared& input);
  void handle(const Launched& input);
  void handle(const Ended& input);
  void handle(const LogsShipped& input);
  void handle(const Found& input);
  void handle(const ShutDown& input);
  void handle(const Tick&) {}

  Allocation* find(const AllocationId& id);
  void stop(const AllocationId& id, Allocation& allocation, Exit why);
  void end(const AllocationId& id, Allocation& allocation, Exit exit);
  void conclude(const AllocationId& id, Allocation& allocation, Exit exit);
  void report(const AllocationId& id, const Allocation& allocation);
  void look_at_deadlines();
  void look_at_end();
  bool all_terminated() const;

  std::map<AllocationId, Allocation> allocations_;
  std::vector<Effect> effects_;
  Duration lease_;
  Duration grace_ = kDefaultKillGrace;
  MonoTime heard_;
  MonoTime now_;
  bool connected_ = false;
  bool shutting_down_ = false;
  bool finished_ = false;
  std::optional<MonoTime> finish_at_;  ///< go, even if the master has not told us to forget
};

}  // namespace det::agent
