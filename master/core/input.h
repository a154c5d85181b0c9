// Owns everything that can happen to the core, as a variant: who sends it and whether it may repeat. Inputs
// are values; a reply, where one is wanted, goes to `reply` when all that the input caused is durable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "master/core/model.h"
#include "master/core/recovered.h"
#include "master/scheduler/position.h"

namespace det::core {

/// Names a waiting caller at the edge; 0 when nobody waits. Means nothing to the core.
using ReplyTo = std::uint64_t;

// ---- from users (through master/api)
// -------------------------------------------------------------------------

/// Repeats safely: keyed by request_id. Replies ExperimentCreated, or kInvalidArgument for an unmanaged one
/// that searches. An unmanaged one is active from the start.
struct SubmitExperiment {
  ReplyTo reply = 0;
  RequestId request_id;
  UserId owner;
  std::int64_t project = 1;
  std::shared_ptr<const expconf::ExperimentConfig> config;
  std::string original_config;
  std::string model_definition;
  std::optional<ExperimentId> parent;
  bool activate = true;
  bool unmanaged = false;
};

enum class ExperimentAction { kActivate, kPause, kCancel, kKill };
/// Repeats safely: an action already done is done. Replies Done, or kNotFound (also when it has ended: the
/// core forgets ended experiments), or kFailedPrecondition: it is ending, or it runs outside the cluster and
/// cannot be paused.
struct ActOnExperiment {
  ReplyTo reply = 0;
  ExperimentId experiment;
  ExperimentAction action;
};

/// Repeats safely. Replies Done or kNotFound.
struct KillTrial {
  ReplyTo reply = 0;
  TrialId trial;
};

/// Repeats safely: keyed by `task`. Replies Done.
struct SubmitCommand {
  ReplyTo reply = 0;
  TaskId task;  ///< a uuid
  UserId owner;
  std::int64_t workspace = 1;
  std::shared_ptr<const expconf::CommandConfig> config;
  std::string context;
};
/// Repeats safely. Replies Done, or kNotFound: it does not exist, or has ended long ago.
struct KillCommand {
  ReplyTo reply = 0;
  TaskId task;
};

/// More of a search that runs or is over: new totals, or else its failed trials once more, from their
/// checkpoints. A trial that goes on starts with no restarts used. Replies Done, or kNotFound (it has ended
/// and `ended` is null, or it does not exist), or why the search refuses (kInvalidArgument,
/// kFailedPrecondition), or kAborted: it changed since it was read. Said twice, it is refused the second
/// time. With `only_check` nothing changes.
struct ContinueSearch {
  ReplyTo reply = 0;
  ExperimentId experiment;
  std::optional<searcher::Extended> extend;
  std::shared_ptr<const Recovered> ended;  ///< the rows of an experiment that has ended
  bool only_check = false;
};

/// Where an experiment stands in the queue of its pool, from now on; what is not given stays. A new priority
/// puts it at the place of its submission; a new pool makes what runs leave, and start again there. Repeats
/// safely. Replies Done, kNotFound, or kInvalidArgument with what is wrong; kFailedPrecondition for a new
/// pool of a command that runs.
struct UpdateJob {
  struct Beside {
    scheduler::Side side{};
    ExperimentId anchor;  ///< of the same pool; the experiment takes its priority
  };
  ReplyTo reply = 0;
  ExperimentId experiment;  ///< or the command
  std::optional<int> priority;
  std::optional<double> weight;
  std::optional<int> max_slots;  ///< 0: no limit
  std::optional<std::string> pool;
  std::optional<Beside> beside;
};

/// Takes an agent, or one slot of it, out of service or back into it, over restarts too. What runs there is
/// asked to leave, or may finish (`drain`). Repeats safely. Replies Done, or kNotFound for what nobody knows.
struct SetService {
  ReplyTo reply = 0;
  AgentId agent;
  std::optional<int> slot;
  bool enabled = true;
  bool drain = false;
};

/// The experiment is about to be deleted from the store: it is not taken up again. Repeats safely. Replies
/// Done, or kFailedPrecondition while it lives.
struct BarExperiment {
  ReplyTo reply = 0;
  ExperimentId experiment;
};

// ---- from agents (through master/api/agent_link)
// ---------------------------------------------------------------

/// What an agent holds when it connects.
struct HeldAllocation {
  AllocationId id;
  AllocationState state;
  std::optional<Exit> exit;
};
/// Replies AgentAccepted, or kAlreadyExists (another machine has the name), or kFailedPrecondition (its
/// devices changed under its running allocations).
struct AgentConnected {
  ReplyTo reply = 0;
  AgentId agent;
  std::string instance;
  std::string version;
  std::string address;
  std::string pool;
  std::vector<Device> slots;
  std::uint64_t session = 0;  ///< unique, chosen by the edge, never 0
  std::vector<HeldAllocation> held;
};
/// Ignored when `session` is not the agent's live one.
struct AgentDisconnected {
  AgentId agent;
  std::uint64_t session = 0;
};
/// Repeats safely (states only advance). With state kTerminated it carries the exit. The agent hears
/// AllocationForgotten when an exit is durable, and may then drop what it keeps. Unknown allocations are
/// answered so too.
struct AllocationUpdated {
  AgentId agent;
  std::uint64_t session = 0;
  HeldAllocation allocation;
};

// ---- from the harness (through master/api/harness)
// ------------------------------------------------------------- All carry (trial, run) and are refused with
// kAborted when that run is not current.

/// The harness (re)opened its session. Replies Attached. Repeats safely.
struct HarnessAttached {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
};
/// Repeats safely: keyed by steps_completed. The row, the searcher's event and the searcher's decision become
/// durable together.
struct ReportValidation {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  std::int64_t steps_completed = 0;
  std::string metrics;                    ///< JSON object, stored as it is
  std::optional<double> searcher_metric;  ///< absent when the report lacks it; NaN is a value
  std::optional<double> searcher_time;    ///< the value of SearcherConfig::time_name(); absent likewise
  WallTime reported;
};
/// Repeats safely: keyed by uuid.
struct ReportCheckpoint {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  CheckpointId uuid;
  std::int64_t steps_completed = 0;
  std::string resources;  ///< JSON object: path → bytes
  std::string metadata;   ///< JSON object
  WallTime reported;
};
/// The run cannot start from the trial's newest checkpoint `uuid`, because of damage. Its trial goes on from
/// `older`, or from nothing, and what was reported beyond that has not happened. Replies ResumeFrom; a repeat
/// is told where the trial stands since. kFailedPrecondition once the run has trained.
struct ReportDamage {
  struct Older {
    CheckpointId uuid;
    std::int64_t steps_completed = 0;
    std::int64_t validation = -1;  ///< the newest validation at or before these steps
  };
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  CheckpointId uuid;
  std::string reason;
  std::optional<Older> older;
};
/// Training's advance. Highest wins.
struct ReportProgress {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  double progress = 0;
  std::int64_t steps_completed = 0;
};
struct ReportInvalidHp {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
};
struct AcknowledgePreemption {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
};

/// A process outside the cluster lives; so does every other report of it say. Replies Done.
struct HarnessAlive {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
};
/// How a trial outside the cluster ended: a terminal state, and why for people. Replies Done, or
/// kFailedPrecondition for a trial of the cluster (its exit says it), or kInvalidArgument. A repeat is
/// refused with kAborted, as all reports of a trial that has ended.
struct EndTrial {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  State end = State::kCompleted;
  std::string message;
};

/// A process outside the cluster takes its trial up: a new run begins, from the newest checkpoint, and
/// earlier runs are fenced off. `hparams` (a JSON object) replaces what the configuration gave. Replies Done,
/// or kAborted (it has ended), or kFailedPrecondition: the trial is the cluster's.
struct TakeUpTrial {
  ReplyTo reply = 0;
  TrialId trial;
  std::optional<std::string> hparams;
  bool new_run = true;  ///< else only `hparams` changes
};
/// A process knows that its machine is about to go: it is asked to leave as if the core wanted it to. Repeats
/// safely. Replies Done; kFailedPrecondition outside the cluster.
struct AskToLeave {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
};
/// A part of an allocation is a helper of the others: when all that are none have succeeded, it is ended, and
/// how it ends does not count. Repeats safely. Replies Done; kInvalidArgument for a part that is not there,
/// or the only one left that is none.
struct MarkDaemon {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  std::size_t part = 0;
};

/// Time has passed: deadlines are looked at. Sent by the loop when next_deadline() is reached.
struct Tick {};

using Input =
    std::variant<SubmitExperiment, ActOnExperiment, KillTrial, SubmitCommand, KillCommand, ContinueSearch,
                 BarExperiment, UpdateJob, SetService, AgentConnected, AgentDisconnected, AllocationUpdated,
                 HarnessAttached, ReportValidation, ReportCheckpoint, ReportDamage, ReportProgress,
                 ReportInvalidHp, AcknowledgePreemption, HarnessAlive, EndTrial, TakeUpTrial, AskToLeave,
                 MarkDaemon, Tick>;

}  // namespace det::core
