// Data model of the master: experiments, trials, commands, allocations, agents and their states, as plain
// values. No behavior; legal state changes are in transitions.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/expconf/command.h"
#include "common/expconf/config.h"
#include "common/searcher/searcher.h"

namespace det::core {

/// State of an experiment, a trial or a command. The names are those of Determined AI (STATE_ACTIVE, …). A
/// stopping state names the end that follows when the last process has exited; it only worsens: completed →
/// canceled → killed → error.
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
/// Returns "ACTIVE", "STOPPING_CANCELED", …
std::string_view state_name(State state);
std::optional<State> parse_state(std::string_view name);

/// State of an allocation or of one of its parts. An allocation exists from the assignment of slots; a trial
/// that waits for slots has a request instead.
enum class AllocationState {
  kAssigned,     ///< has slots; the agent may not have received the start yet
  kPulling,      ///< the agent prepares: unpacks the code archive, builds the model
  kStarting,     ///< the process exists
  kRunning,      ///< the harness has attached, or a plain command runs
  kTerminating,  ///< preempted or killed
  kTerminated,   ///< the process has exited
};
std::string_view allocation_state_name(AllocationState state);
std::optional<AllocationState> parse_allocation_state(std::string_view name);

/// Why an allocation ended. Kinds with is_failure() count against max_restarts, others after many in a row
/// (Trials::end_run).
enum class ExitKind {
  kSucceeded,  ///< exit code 0
  /// Program error: non-zero exit, foreign signal, compile error of the model. Exit code kExitFinal or a
  /// second kExitRepeatable (common/base/exit_codes.h) ends the trial before its restarts are used up.
  kFailed,
  kLost,     ///< infrastructure: agent lost, start failed, state lost; counts after 20 in a row
  kStopped,  ///< the master ended it
  kOutOfMemory,
  kStorageFull,  ///< runs again with exponential back-off; counts only after more than an hour of it
  kPreempted,    ///< left on request; harnesses save a checkpoint first
  kInvalidHp,    ///< the trial rejected its hyperparameters
  kHung,         ///< ended after its hang_timeout without a sign of life
};
/// The exit is the program's own fault.
constexpr bool is_failure(ExitKind kind) {
  return kind == ExitKind::kFailed || kind == ExitKind::kOutOfMemory || kind == ExitKind::kHung;
}
/// How an allocation, or a part of one, ended.
struct Exit {
  ExitKind kind = ExitKind::kLost;
  int code = 0;  ///< exit code; 128 + n for signal n
  /// Text for people. First line: "exit code 7", "killed by signal 9", "agent a1 lost". Further lines: the
  /// last output of a failed task.
  std::string message;
  bool operator==(const Exit&) const = default;
};

/// Queue settings of an experiment or command: as configured, then as users change them (UpdateJob).
struct QueueSettings {
  std::string pool;              ///< "" for the default pool of the cluster
  int priority = 42;             ///< 1..99, smaller is more important
  double weight = 1;             ///< > 0; share of the user's slots (fair_share)
  std::optional<int> max_slots;  ///< limit on the slots of all its allocations together
  std::int64_t position = 0;     ///< order within the priority, see scheduler/position.h
  bool operator==(const QueueSettings&) const = default;
};

/// A search over hyperparameters, or a single training run: a configuration and its trials.
struct Experiment {
  ExperimentId id;
  /// Idempotency key of the caller: a repeated submission with it returns the same experiment.
  RequestId request_id;
  std::string job_id;  ///< uuid
  UserId owner;
  std::int64_t project = 1;
  std::int64_t workspace = 1;  ///< of the project; not stored with the experiment
  State state = State::kActive;
  std::shared_ptr<const expconf::ExperimentConfig> config;
  std::string code_archive;  ///< SHA-256 (hex) of the stored code archive; "" when there is none
  double progress = 0;       ///< 0..1
  WallTime submitted;
  std::optional<WallTime> ended;
  std::optional<ExperimentId> parent;  ///< the experiment that this one is forked from
  /// Number of events that the searcher has handled; the number of the next event.
  std::int64_t searcher_events = 0;
  /// Its single trial runs outside the cluster: it gets no slots, and ends by EndTrial or when its reports
  /// stop.
  bool detached = false;
  QueueSettings queue;
};

/// One training of an experiment's model with fixed hyperparameters: a sequence of runs (allocations), each
/// of which resumes from the newest checkpoint.
struct Trial {
  TrialId id;
  ExperimentId experiment;
  RequestId request_id;              ///< derived from the experiment seed and `number`
  searcher::TrialNumber number = 0;  ///< within its search
  TaskId task;
  std::uint32_t seed = 0;
  std::string hparams;  ///< JSON object
  State state = State::kActive;
  RunNumber run = 0;                 ///< run of the newest allocation, the fencing token; 0 before the first
  std::int32_t restarts = 0;         ///< failed runs that count against max_restarts
  std::string latest_checkpoint;     ///< uuid; "" when there is none
  std::int64_t latest_steps = 0;     ///< steps_completed of that checkpoint
  std::int64_t steps_completed = 0;  ///< highest number reported by the current run
  /// Steps of the current run's newest validation; a validation that is not beyond it is a repeat. -1: none.
  std::int64_t last_validation = -1;
  /// Steps of the newest validation at or before latest_steps: last_validation of the next run. -1: none.
  std::int64_t checkpoint_validation = -1;
  /// Highest steps delivered to the searcher, over all runs. The searcher gets each validation once. -1:
  /// none.
  std::int64_t searcher_steps = -1;
  std::optional<double> best_metric;  ///< best searcher metric so far; never NaN
  bool early_exit_invalid_hp = false;
  bool held = false;              ///< waits at a rung: gets no slots until the searcher resumes it
  bool retries_canceled = false;  ///< a log policy matched: the next failure is the last
  /// Agents on which no later run starts, because a log policy has excluded them; ascending.
  std::vector<AgentId> excluded;
  double progress = 0;      ///< 0..1
  std::string exit_reason;  ///< why the last allocation failed or was lost, for people
  WallTime started;
  std::optional<WallTime> ended;
};

/// A command line with slots of its own. It has at most one allocation, is never preempted and never run
/// again by the cluster, because its side effects cannot be undone. States: kActive until the end, kPaused
/// between PauseCommand and ResumeCommand, kStoppingKilled after a kill by a user, then kCompleted, kCanceled
/// (killed) or kError.
struct Command {
  CommandId id;
  TaskId task;         ///< uuid chosen by the caller
  std::string job_id;  ///< uuid
  UserId owner;
  std::int64_t workspace = 1;
  State state = State::kActive;
  RunNumber run = 1;  ///< of its allocation; each ResumeCommand adds one
  std::shared_ptr<const expconf::CommandConfig> config;
  std::string code_archive;  ///< SHA-256 (hex) of the stored code archive; "" when there is none
  WallTime submitted;
  std::optional<WallTime> ended;
  std::optional<Exit> exit;  ///< exit of its allocation; absent when it was killed before it had one
  QueueSettings queue;
};

/// Returns the id of an allocation. It is a function of task and run, so it is unique and every component can
/// compute it.
AllocationId allocation_id(const TaskId& task, RunNumber run);

/// A device of an agent. Its index in Agent::slots is its slot id.
struct Device {
  std::string type = "CPU";  ///< "CPU", "CUDA" or "ARTIFICIAL"
  std::string brand;
  std::string uuid;
  int link = 0;  ///< as in scheduler::Slot
};

/// The part of an allocation on one agent. A gang has several, in the order of ranks; the first has rank 0.
struct AllocationPart {
  AgentId agent;
  /// Agent::instance of the assignment. After a restart of the master it distinguishes that machine from an
  /// impostor with the same name.
  std::string agent_instance;
  std::string address;     ///< where the other parts reach the processes of this one
  std::vector<int> slots;  ///< slot ids on `agent`; empty for a zero-slot task
  AllocationState state = AllocationState::kAssigned;
  std::optional<Exit> exit;  ///< set exactly when `state` is kTerminated
  bool daemon = false;       ///< ended when all other parts have ended; its exit does not count
  /// Hash of the token in the newest StartAllocation of this part; its processes authenticate with the token.
  std::string token_hash;
  bool operator==(const AllocationPart&) const = default;
};

/// The slots of one run of a trial, or of a command, on one or several agents. Slots are free again only when
/// the process on their agent has exited or its agent is lost.
struct Allocation {
  AllocationId id;
  TaskKey task;
  RunNumber run = 0;  ///< of the trial or command
  /// At least the state of the least advanced part; kRunning once the harness has attached, kTerminating once
  /// the allocation is to end, kTerminated when every part is.
  AllocationState state = AllocationState::kAssigned;
  std::string pool;
  std::int64_t workspace = 1;         ///< of the experiment or command at the start; its usage counts there
  std::vector<AllocationPart> parts;  ///< never empty
  int port = 0;                       ///< TCP port where rank 0 of a gang meets the others; 0 for one part
  bool attached = false;              ///< the harness of rank 0 has opened its session
  bool preempt_requested = false;     ///< the harness is to save a checkpoint and exit
  bool preempt_acknowledged = false;  ///< the checkpoint of that request is saved
  bool kill_requested = false;
  std::optional<MonoTime> preempt_deadline;  ///< when a preemption becomes a kill
  std::optional<MonoTime> kill_again;        ///< when the kill is repeated
  WallTime started;
  std::optional<WallTime> ended;
  /// The exit of the first part that did not succeed, from that moment on. The other parts are killed: a gang
  /// cannot continue without all of its parts.
  std::optional<Exit> exit;

  /// Number of slots over all parts.
  int slot_count() const;
  /// Returns the part on an agent, or null.
  AllocationPart* part_on(const AgentId& agent);
  const AllocationPart* part_on(const AgentId& agent) const;
  /// Whether a token with this hash belongs to a part. Constant time in the content of the hashes.
  bool has_token(std::string_view hash) const;
};

/// Agents and slots that administrators took out of service. Persistent: an agent that reconnects is still
/// out of service.
struct AgentSettings {
  AgentId agent;
  bool enabled = true;           ///< takes new work
  bool draining = false;         ///< with `enabled` false: current allocations may finish
  std::set<int> disabled_slots;  ///< slot ids
  bool operator==(const AgentSettings&) const = default;
};

/// Life of a pilot, in this order. The names are stored.
enum class PilotPhase {
  kSubmitted,  ///< to be submitted; the engine has not confirmed it
  kPending,    ///< in the queue of the engine
  kRunning,    ///< the engine runs it, or one of its agents has connected
  kCanceling,  ///< released; the engine has not confirmed its end
  kEnded,
};
/// Returns "SUBMITTED", "PENDING", …
std::string_view pilot_phase_name(PilotPhase phase);
std::optional<PilotPhase> parse_pilot_phase(std::string_view name);

/// A job of an external engine (Slurm) that runs one agent on each of its nodes. Its agents are named
/// "NAME-0", "NAME-1", …
struct Pilot {
  std::int64_t id = 0;  ///< unique in the cluster, never used again
  /// "det-CLUSTER-POOL-ID": name of the job in the engine, by which a repeated submission finds it.
  std::string name;
  std::string pool;
  int nodes = 1;
  PilotPhase phase = PilotPhase::kSubmitted;
  std::string job;                ///< id of the job in the engine; "" before the engine has confirmed it
  std::string reason;             ///< why it is pending or has ended, in the words of the engine
  std::optional<WallTime> until;  ///< when the engine ends it at the latest
  WallTime submitted;
  std::optional<WallTime> ended;
  /// Slots of the one allocation that the pilot is for; absent for a pilot that takes any work.
  std::optional<int> slots;
  bool used = false;  ///< with `slots`: the allocation has started; the pilot takes no other one
  bool operator==(const Pilot&) const = default;
};

/// An agent that is connected, or that has allocations or a lease from an earlier connection. Not stored:
/// agents register again whenever they connect.
struct Agent {
  AgentId id;
  std::string instance;  ///< uuid of the agent's data directory; identifies the machine behind the name
  std::string version;
  std::string address;
  std::string pool;
  std::string sandbox, sandbox_missing;  ///< as in AgentConnected
  std::string problem;                   ///< as in AgentProblem
  std::vector<Device> slots;             ///< by slot id
  /// Why slots are out of service, by slot id: as in SlotProblems, and because a check is not answered yet.
  std::map<int, std::string> slot_problems;
  bool checks_slots = false;  ///< as in AgentConnected
  /// CheckSlot messages of this session; and by slot the one that no SlotProblems has answered.
  std::int64_t checks = 0;
  std::map<int, std::int64_t> pending_checks;
  /// Id of the current connection; 0 when disconnected.
  std::uint64_t session = 0;
  std::string boot;  ///< as in AgentConnected, of the newest connection
  std::int64_t connection = 0;
  /// The agent has announced in this session that it stops.
  bool stopping = false;
  /// The agent does not come back after it has left or is lost, so its settings and its identity are deleted
  /// then. Unknown (false) after a restart of the master until it connects.
  bool ephemeral = false;
  /// When a disconnected agent is lost and its allocations end: after its lease, the kill grace and a margin.
  std::optional<MonoTime> lost_at;
  /// Allocations that have ended for the master but may still have processes here. The agent takes no new
  /// work until they are gone.
  std::set<AllocationId> leftovers;
  WallTime registered;
};

}  // namespace det::core
