// Owns the nouns of the master as plain data: what an experiment, a trial, an allocation and an agent are,
// and the states they pass through. No behaviour; legal state changes are in transitions.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "master/expconf/command.h"
#include "master/expconf/config.h"
#include "master/searcher/searcher.h"

namespace det::core {

/// Of an experiment and of a trial, with upstream's names (STATE_ACTIVE, …). A stopping state says which end
/// comes when the last process has gone; it may only worsen: completed → canceled → killed → error.
enum class State {
  kActive,
  kPaused,
  kStoppingCompleted,
  kStoppingCanceled,
  kStoppingKilled,
  kStoppingError,
  kCompleted,
  kCanceled,
  kError,
};
bool is_terminal(State state);
bool is_stopping(State state);
std::string_view state_name(State state);  ///< "ACTIVE", "STOPPING_CANCELED", …
std::optional<State> parse_state(std::string_view name);

/// Exists from the moment slots are given. A trial that waits for slots has no allocation: it is a request.
enum class AllocationState {
  kAssigned,     ///< given slots; the agent may not have heard of it yet
  kPulling,      ///< the agent prepares: unpacks the context, builds the model
  kStarting,     ///< its process exists
  kRunning,      ///< the harness has attached, or a plain command runs
  kTerminating,  ///< told to end
  kTerminated,
};
std::string_view allocation_state_name(AllocationState state);
std::optional<AllocationState> parse_allocation_state(std::string_view name);

/// Why an allocation ended. What is_failure() says counts against max_restarts.
enum class ExitKind {
  kSucceeded,  ///< exit code 0
  kFailed,   ///< the user's fault: non-zero exit, a signal nobody of ours sent, a model that does not compile
  kLost,     ///< infrastructure: agent gone, start failed, state lost; run again without counting
  kStopped,  ///< ended because the master told it to
  kOutOfMemory,
  kStorageFull,  ///< run again, later and later: space may come back. Counts once it goes on for hours
  kPreempted,    ///< left as it was asked to, its checkpoint saved
  kInvalidHp,    ///< the trial said so itself
  kHung,         ///< silent for its hang_timeout, and therefore ended
};
/// The program's own fault.
constexpr bool is_failure(ExitKind kind) {
  return kind == ExitKind::kFailed || kind == ExitKind::kOutOfMemory || kind == ExitKind::kHung;
}
struct Exit {
  ExitKind kind = ExitKind::kLost;
  int code = 0;  ///< exit code, 128 + n for signal n
  /// For people: "exit code 7", "killed by signal 9", "agent a1 lost"; in lines below, the last that a failed
  /// task printed.
  std::string message;
  bool operator==(const Exit&) const = default;
};

/// Where an experiment stands among those of its pool: at first as configured, then as users change it.
struct QueuePlace {
  std::string pool;  ///< "" is the cluster's default
  int priority = 42;
  double weight = 1;
  std::optional<int> max_slots;
  std::int64_t position = 0;  ///< inside the priority; scheduler/position.h
  bool operator==(const QueuePlace&) const = default;
};

struct Experiment {
  ExperimentId id;
  RequestId request_id;  ///< the caller's key: a submission repeated with it returns the same experiment
  std::string job_id;    ///< uuid
  UserId owner;
  std::int64_t project = 1;
  State state = State::kActive;
  std::shared_ptr<const expconf::ExperimentConfig> config;
  std::string model_definition;  ///< SHA-256 (hex) of the stored context archive; "" when there is none
  double progress = 0;           ///< 0..1
  WallTime submitted;
  std::optional<WallTime> ended;
  std::optional<ExperimentId> parent;  ///< forked from
  std::int64_t searcher_events = 0;    ///< how many events the searcher has taken; the next event's number
  /// Its one trial runs outside the cluster: it is never given slots, and ends by its own word or by silence.
  bool unmanaged = false;
  QueuePlace queue;
};

struct Trial {
  TrialId id;
  ExperimentId experiment;
  RequestId request_id;
  searcher::TrialNumber number = 0;  ///< in its search
  TaskId task;
  std::uint32_t seed = 0;
  std::string hparams;  ///< JSON object
  State state = State::kActive;
  RunNumber run = 0;  ///< of the newest allocation; 0 before the first
  std::int32_t restarts = 0;
  std::string latest_checkpoint;     ///< uuid; "" when there is none
  std::int64_t latest_steps = 0;     ///< steps_completed of that checkpoint
  std::int64_t steps_completed = 0;  ///< highest reported by the current run
  std::int64_t last_validation =
      -1;  ///< steps of the current run's newest validation; what is not above it is a repeat
  std::int64_t checkpoint_validation =
      -1;  ///< newest validation at or before latest_steps: a new run starts from there
  std::int64_t searcher_steps =
      -1;  ///< highest steps the searcher has heard of, over all runs: it hears each once
  std::optional<double> best_metric;  ///< best searcher metric so far (never NaN)
  bool early_exit_invalid_hp = false;
  bool held = false;  ///< it waits at a rung of its search: no slots until the search lets it go on
  double progress = 0;
  std::string exit_reason;  ///< of the last allocation that failed or was lost, for people
  WallTime started;
  std::optional<WallTime> ended;
};

/// Names a command inside the master; people know it by its task.
using CommandId = Id<struct CommandTag, std::int64_t>;

/// A command line in an allocation of its own: at most one, never pre-empted, whatever becomes of it never
/// run again. kActive until it has ended, kStoppingKilled once a user wants it gone; kCompleted, kCanceled
/// (killed) or kError.
struct Command {
  CommandId id;
  TaskId task;  ///< a uuid, chosen by the caller
  std::string job_id;
  UserId owner;
  std::int64_t workspace = 1;
  State state = State::kActive;
  std::shared_ptr<const expconf::CommandConfig> config;
  std::string context;  ///< SHA-256 (hex) of the stored context archive; "" when there is none
  WallTime submitted;
  std::optional<WallTime> ended;
  std::optional<Exit> exit;  ///< of its allocation; none when it was killed before it had one
  QueuePlace queue;
};

/// What waits and runs is named by a trial and its experiment. A command is named so too, by numbers below
/// zero.
inline TrialId as_trial(CommandId id) { return TrialId(-id.value); }
inline ExperimentId as_job(CommandId id) { return ExperimentId(-id.value); }
inline bool is_command(TrialId id) { return id.value < 0; }
inline bool is_command(ExperimentId id) { return id.value < 0; }
inline CommandId command_of(TrialId id) { return CommandId(-id.value); }
inline CommandId command_of(ExperimentId id) { return CommandId(-id.value); }

/// A device an agent offers. Its position in Agent::slots is its slot id.
struct Device {
  std::string type = "CPU";  ///< "CPU", "CUDA" or "ARTIFICIAL"
  std::string brand;
  std::string uuid;
  bool operator==(const Device&) const = default;
};

/// What of an allocation is on one agent. A gang has several; their order is the order of ranks, and on the
/// first is rank 0.
struct AllocationPart {
  AgentId agent;
  std::string agent_instance;  ///< Agent::instance it was given to: after a restart tells that machine from
                               ///< an impostor
  std::string address;         ///< where the other parts reach that agent's processes
  std::vector<int> slots;      ///< slot ids on `agent`; empty for a zero-slot task
  AllocationState state = AllocationState::kAssigned;
  std::optional<Exit> exit;  ///< once it is kTerminated
  bool daemon = false;       ///< a helper of the others, ended when they are done
  bool operator==(const AllocationPart&) const = default;
};

struct Allocation {
  AllocationId id;
  TrialId trial;  ///< or the command
  RunNumber run = 0;
  /// The least advanced part's, kRunning once the harness has attached, kTerminating once it is to end;
  /// kTerminated when every part is.
  AllocationState state = AllocationState::kAssigned;
  std::string pool;
  std::vector<AllocationPart> parts;  ///< never empty
  int port = 0;                       ///< where rank 0 of a gang waits for the others; 0 when there are none
  bool attached = false;              ///< rank 0 talks to us (kept over a master restart by its re-attach)
  bool preempt_requested = false;     ///< told to checkpoint and leave
  bool preempt_acknowledged = false;
  bool kill_requested = false;
  std::optional<MonoTime> preempt_deadline;  ///< when we stop asking nicely
  std::optional<MonoTime> kill_again;        ///< when the kill is repeated
  WallTime started;
  std::optional<WallTime> ended;
  /// How it ends: of its parts the first that did not succeed, from then on. A gang lives and dies as one:
  /// what is left of it is killed.
  std::optional<Exit> exit;

  int slot_count() const;
  AllocationPart* part_on(const AgentId& agent);  ///< null when it has none there
  const AllocationPart* part_on(const AgentId& agent) const;
};

/// What administrators took out of service. Kept: an agent that comes back is still out of it.
struct AgentSettings {
  AgentId agent;
  bool enabled = true;    ///< takes new work
  bool draining = false;  ///< of one that is not enabled: what runs there may finish
  std::set<int> disabled_slots;
  bool operator==(const AgentSettings&) const = default;
};

/// In memory only: the agents say who they are whenever they connect.
struct Agent {
  AgentId id;
  std::string instance;  ///< uuid of the agent's data directory: the same machine coming back, or an impostor
  std::string version;
  std::string address;
  std::string pool;
  std::vector<Device> slots;
  std::uint64_t session = 0;  ///< of the live connection; 0 when disconnected
  std::optional<MonoTime>
      lost_at;  ///< when a silent agent's allocations are given up (its lease + grace + margin)
  /// What runs there, or may, and is over for everybody else: until it has gone the agent gets no work.
  std::set<AllocationId> leftovers;
  WallTime registered;
};

}  // namespace det::core
