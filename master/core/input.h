// Inputs of the core: everything that can happen to it, as plain values in one variant. Each comment gives
// the effect, the reply and the errors. "Idempotent" means that a sender may repeat the input after a lost
// reply. A reply goes to `reply` once everything that the input caused is durable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "master/core/model.h"
#include "master/core/queues/quota.h"
#include "master/core/recovered.h"
#include "master/scheduler/position.h"

namespace det::core {

/// Identifies a waiting caller at the edge; 0 when no reply is expected. Opaque to the core.
using ReplyTo = std::uint64_t;

// ---- From users (through master/api) ----

/// Creates an experiment; a detached one is active from the start. Replies ExperimentCreated. Idempotent by
/// request_id. Errors: kInvalidArgument (a detached experiment must use the "single" searcher, or the
/// searcher rejects the configuration), kResourceExhausted (the quota of its user or workspace),
/// kFailedPrecondition (its project or workspace is barred).
struct SubmitExperiment {
  ReplyTo reply = 0;
  RequestId request_id;
  UserId owner;
  std::int64_t project = 1;
  std::int64_t workspace = 1;  ///< of the project
  std::shared_ptr<const expconf::ExperimentConfig> config;
  std::string original_config;         ///< text of the user, stored as it is
  std::string code_archive;            ///< SHA-256 (hex) of the code archive; "" when there is none
  std::optional<ExperimentId> parent;  ///< the experiment that this one is forked from
  bool activate = true;                ///< false: create it paused
  bool detached = false;               ///< its trial runs outside the cluster and gets no slots
};

enum class ExperimentAction { kActivate, kPause, kCancel, kKill };
/// Activates, pauses, cancels or kills an experiment with all its trials. Replies Done. Idempotent. Errors:
/// kNotFound (unknown or ended: the core forgets ended experiments), kFailedPrecondition (pause or activate:
/// the experiment is ending; pause: it runs outside the cluster).
struct ActOnExperiment {
  ReplyTo reply = 0;
  ExperimentId experiment;
  ExperimentAction action;
};

/// Kills one trial. Replies Done. Idempotent. Errors: kNotFound (unknown, or its experiment has ended).
struct KillTrial {
  ReplyTo reply = 0;
  TrialId trial;
};

/// Creates a command and queues it. Replies Done. Idempotent by `task`. Errors: kFailedPrecondition (its
/// workspace is barred).
struct SubmitCommand {
  ReplyTo reply = 0;
  TaskId task;  ///< uuid chosen by the caller
  UserId owner;
  std::int64_t workspace = 1;
  std::shared_ptr<const expconf::CommandConfig> config;
  std::string code_archive;  ///< SHA-256 (hex) of the code archive; "" when there is none
};
/// Kills a command. Replies Done, also when it has ended recently. Idempotent. Errors: kNotFound (unknown, or
/// ended long ago).
struct KillCommand {
  ReplyTo reply = 0;
  TaskId task;
};

/// Pauses a command: it gives its slots back, and its processes are killed. Replies Done. Idempotent. Errors:
/// kNotFound (unknown), kFailedPrecondition (it ends or has ended).
struct PauseCommand {
  ReplyTo reply = 0;
  TaskId task;
};
/// Runs a paused command again, from its beginning. Replies Done, also when it is not paused. Errors:
/// kNotFound (unknown), kFailedPrecondition (its processes still end, it ends or has ended).
struct ResumeCommand {
  ReplyTo reply = 0;
  TaskId task;
};

/// Continues a search that runs or has ended: with `extend` up to new totals, otherwise by retrying its
/// failed trials from their checkpoints. `canceled` retries failed and killed trials in both cases. A trial
/// that is reopened starts with no restarts used. Replies Done. Not idempotent: the repeat is rejected,
/// because nothing is left to continue. Errors: kNotFound (unknown, or ended while `ended` is null),
/// kInvalidArgument and kFailedPrecondition (the search cannot be continued this way), kAborted (the
/// experiment has changed since `ended` was read: read again), kResourceExhausted (the quota of its user or
/// workspace).
struct ContinueSearch {
  ReplyTo reply = 0;
  ExperimentId experiment;
  std::optional<searcher::Extended> extend;
  std::shared_ptr<const Recovered> ended;  ///< the stored rows of an ended experiment
  bool only_check = false;                 ///< reply as usual, change nothing
  bool canceled = false;                   ///< retry failed and canceled trials, also with `extend`
};

/// Changes queue settings of an experiment or a command. Unset fields keep their value. A new priority resets
/// the position to the time of submission. A new pool preempts the current allocations of an experiment; its
/// trials start again there. Replies Done. Idempotent. Errors: kNotFound, kInvalidArgument (a value is out of
/// range, or the job or the anchor is not in this queue), kFailedPrecondition (a new pool for a running
/// command).
struct UpdateJob {
  /// A move directly ahead of or behind another job.
  struct Beside {
    scheduler::Side side{};
    JobKey anchor;  ///< of the same pool; the moved job takes its priority
  };
  ReplyTo reply = 0;
  JobKey job;
  std::optional<int> priority;
  std::optional<double> weight;
  std::optional<int> max_slots;     ///< 0: no limit
  std::optional<std::string> pool;  ///< another one cannot be combined with `beside`
  std::optional<Beside> beside;
};

/// Takes an agent, or one slot of it, out of service or back into service. Persistent over restarts.
/// Allocations there are preempted (commands are killed), unless `drain` lets them finish. Replies Done.
/// Idempotent. Errors: kNotFound (unknown agent or slot).
struct SetService {
  ReplyTo reply = 0;
  AgentId agent;
  std::optional<int> slot;  ///< absent: the whole agent
  bool enabled = true;
  bool drain = false;
};

/// Sets or removes a quota. A lower quota ends nothing that exists. Replies Done. Idempotent. Errors:
/// kInvalidArgument (a negative limit).
struct SetQuota {
  ReplyTo reply = 0;
  scheduler::QuotaKey of;
  QuotaResource resource = QuotaResource::kSlots;
  std::optional<std::int64_t> limit;  ///< absent: no quota
};
/// Experiments have moved to another workspace; the caller has stored it. Ended ones are ignored. Replies
/// Done. Idempotent.
struct PlaceExperiments {
  ReplyTo reply = 0;
  std::vector<ExperimentId> experiments;
  std::int64_t workspace = 1;
};

/// Prevents an ended experiment from being continued, because it is about to be deleted from the store.
/// `barred` false lifts one such bar, after a deletion that failed: each deletion has its own. Not stored.
/// Replies Done. Errors: kFailedPrecondition (the experiment has not ended).
struct BarExperiment {
  ReplyTo reply = 0;
  ExperimentId experiment;
  bool barred = true;
};

/// Refuses submissions into projects and into a workspace, because these are about to be deleted from the
/// store. `barred` false lifts one such bar, after a deletion that failed: each deletion has its own. Not
/// stored. Replies Done.
struct BarContainer {
  ReplyTo reply = 0;
  std::vector<std::int64_t> projects;
  std::int64_t workspace = 0;  ///< 0: none
  bool barred = true;
};

/// A barred experiment has been deleted from the store: its request id can be used again. Replies Done.
/// Idempotent.
struct ExperimentDeleted {
  ReplyTo reply = 0;
  ExperimentId experiment;
  RequestId request_id;
};

// ---- From agents (through master/api/streams/agent_link) ----

/// State of an allocation (its part) on an agent, as the agent reports it.
struct HeldAllocation {
  AllocationId id;
  AllocationState state;
  std::optional<Exit> exit;  ///< with kTerminated, if the agent has it
};
/// An agent opens a session. Reconciles `held` with the allocations that the core expects there: lost starts
/// are sent again, lost allocations end, unexpected ones are killed. Replies AgentAccepted. Errors:
/// kAlreadyExists (another machine has this name), kFailedPrecondition (pool or devices changed under running
/// allocations), kAborted (a later connection of the instance has arrived before).
struct AgentConnected {
  ReplyTo reply = 0;
  AgentId agent;
  std::string instance;  ///< uuid of the agent's data directory
  std::string version;
  std::string address;  ///< where other agents reach its processes
  std::string pool;     ///< "" for the default pool
  std::vector<Device> slots;
  bool ephemeral = false;     ///< see Agent
  std::uint64_t session = 0;  ///< unique, chosen by the edge, never 0
  std::vector<HeldAllocation> held;
  std::string sandbox = {};          ///< sandbox of tasks: "full", "partial", "off"; "" if unknown
  std::string sandbox_missing = {};  ///< reason and remedy
  std::string problem = {};          ///< as in AgentProblem
  std::map<int, std::string> slot_problems = {};  ///< as in SlotProblems
  bool checks_slots = false;                      ///< the agent executes CheckSlot
  std::string boot = {};                          ///< boot id of its machine; "" if unknown
  std::int64_t connection = 0;                    ///< larger for each later connection within a boot
};
/// A session has ended. The agent's lease starts to run. Ignored when `session` is not the current one.
struct AgentDisconnected {
  AgentId agent;
  std::uint64_t session = 0;
};
/// An agent is about to stop. It gets no new allocations until its next session, and its present ones are
/// preempted (commands are killed). Idempotent. Ignored when `session` is not the current one.
struct AgentStopping {
  AgentId agent;
  std::uint64_t session = 0;
};
/// An agent can take no new work, for example because its disk is full, or it can again. Its allocations go
/// on. Idempotent. Ignored when `session` is not the current one.
struct AgentProblem {
  AgentId agent;
  std::uint64_t session = 0;
  std::string problem;  ///< reason and remedy, for people; "": none
};
/// Slots that an agent takes out of service because of their devices. Replaces its earlier list. Their
/// allocations go on. Idempotent. Ignored when `session` is not the current one.
struct SlotProblems {
  AgentId agent;
  std::uint64_t session = 0;
  std::map<int, std::string> problems;  ///< reasons by slot id; unknown slots are ignored
  std::int64_t checks = 0;              ///< number of the latest CheckSlot that the agent has received
};
/// An ephemeral agent has no process of an allocation any more and does not come back. Removes it at once,
/// without the wait for its lease; its allocations end as kLost. Ignored when `session` is not the current
/// one, and for an agent that is not ephemeral.
struct AgentLeft {
  AgentId agent;
  std::uint64_t session = 0;
};
/// An allocation on an agent has advanced or, with state kTerminated, exited. Idempotent: states only
/// advance. The exit is acknowledged by AllocationForgotten once it is durable, as is the exit of an unknown
/// allocation. Ignored when `session` is not the current one.
struct AllocationUpdated {
  AgentId agent;
  std::uint64_t session = 0;
  HeldAllocation allocation;
};

// ---- From the harness (through master/api/streams) ----
//
// All carry (trial, run), which is a fencing token: a report of any other than the current run is rejected
// with kAborted. Processes of an old run that still live (a partitioned machine) can therefore change
// nothing.

/// The harness opened or reopened its session. Replies Attached. Idempotent.
struct HarnessAttached {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
};
/// Reports validation metrics. The metrics, the searcher's event and the searcher's decision become durable
/// together. Replies Done. Idempotent by steps_completed: a report that is not beyond the newest one is
/// dropped.
struct ReportValidation {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  std::int64_t steps_completed = 0;
  std::string metrics;                    ///< JSON object, stored as it is
  std::optional<double> searcher_metric;  ///< absent when the report lacks it; NaN is a value
  /// Value of SearcherConfig::time_name(); absent when the report lacks it.
  std::optional<double> searcher_time;
  WallTime reported;
};
/// Reports a saved checkpoint. It becomes the trial's newest one unless an earlier report has more steps.
/// Replies Done. Idempotent by uuid.
struct ReportCheckpoint {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  CheckpointId uuid;
  std::int64_t steps_completed = 0;
  std::string resources;  ///< JSON object: path → size in bytes
  std::string metadata;   ///< JSON object
  WallTime reported;
};
/// The run cannot start from the trial's newest checkpoint `uuid`, which is damaged. The trial resumes from
/// `older`, or from the beginning, and metrics beyond that point are archived. Replies ResumeFrom.
/// Idempotent: when `uuid` is not the newest checkpoint, replies with the newest one. Errors:
/// kFailedPrecondition (the run has trained already).
struct ReportDamage {
  /// An earlier checkpoint of the trial.
  struct Older {
    CheckpointId uuid;
    std::int64_t steps_completed = 0;
    std::int64_t validation = -1;  ///< steps of the newest validation at or before it; -1 without one
  };
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  CheckpointId uuid;
  std::string reason;
  std::optional<Older> older;
};
/// Reports the advance of training, 0..1. Replies Done. Idempotent: a report behind an earlier one is
/// dropped.
struct ReportProgress {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  double progress = 0;
  std::int64_t steps_completed = 0;
};
/// The trial rejects its hyperparameters. It ends as completed and the searcher is notified of the reason;
/// the process has 10 s to exit by itself. Replies Done. Idempotent.
struct ReportInvalidHp {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
};
/// The harness has saved a checkpoint in response to PreemptAllocation: exit code 0 then counts as preempted,
/// not as completed. Replies Done. Idempotent. Errors: kFailedPrecondition (the run has not been preempted).
struct AcknowledgePreemption {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
};

/// Heartbeat of a process outside the cluster. Every other report of it counts as one, too. Replies Done.
/// Idempotent.
struct HarnessAlive {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
};
/// Ends a trial outside the cluster. Replies Done. A repeat fails with kAborted, like every report of an
/// ended trial. Errors: kInvalidArgument (`end` is not terminal), kFailedPrecondition (the trial runs on the
/// cluster, where the exit of its process decides).
struct EndTrial {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  State end = State::kCompleted;  ///< a terminal state
  std::string message;            ///< reason, for people
};

/// A process outside the cluster takes over a trial: a new run begins at the newest checkpoint, and earlier
/// runs are fenced off. Replies Done. Each repeat begins another run. Errors: kAborted (unknown or ended),
/// kFailedPrecondition (the trial runs on the cluster).
struct TakeUpTrial {
  ReplyTo reply = 0;
  TrialId trial;
  std::optional<std::string> hparams;  ///< JSON object; replaces the hyperparameters of the configuration
  bool new_run = true;                 ///< false: only set `hparams`
};
/// A line of a trial's log matched a policy with the action cancel_retries: the trial fails at its next
/// failure. Unknown and ended trials are ignored. Idempotent.
struct CancelRetries {
  TrialId trial;
};
/// A line of a trial's log from an agent matched a policy with the action exclude_node: no later run of the
/// trial starts on that agent. Unknown and ended trials are ignored. Idempotent.
struct ExcludeAgent {
  TrialId trial;
  AgentId agent;
};
/// Preempts the caller's own allocation, because its machine is about to be shut down. Replies Done.
/// Idempotent. Errors: kFailedPrecondition (the trial runs outside the cluster).
struct AskToLeave {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
};
/// Marks a part of an allocation as a daemon. Daemons are ended when all other parts have ended, and their
/// exits do not count. Replies Done. Idempotent. Errors: kInvalidArgument (no such part, or no other part
/// would be left that is not a daemon).
struct MarkDaemon {
  ReplyTo reply = 0;
  TrialId trial;
  RunNumber run = 0;
  std::size_t part = 0;  ///< index in Allocation::parts
};

// ---- From engines (through master/engines) ----

/// State of a pilot in its engine. Phases only advance. A pilot that the core does not have, or has released,
/// is canceled. Idempotent.
struct PilotState {
  std::string pool;
  std::string name;
  PilotPhase phase = PilotPhase::kPending;  ///< kPending, kRunning or kEnded; kEnded also when refused
  std::string job;
  std::string reason;
  std::optional<WallTime> until;
};
/// Whether the engine of a pool can be reached. Only shown: nothing is submitted or ended because of
/// it. Idempotent.
struct ProviderState {
  std::string pool;
  std::string problem;  ///< error of the engine; "": the engine replies
};

/// Time has passed: expired deadlines are handled. Sent by the loop when next_deadline() is reached.
struct Tick {};

using Input =
    std::variant<SubmitExperiment, ActOnExperiment, KillTrial, SubmitCommand, KillCommand, PauseCommand,
                 ResumeCommand, ContinueSearch, BarExperiment, BarContainer, ExperimentDeleted, UpdateJob,
                 SetService, SetQuota, PlaceExperiments, AgentConnected, AgentDisconnected, AgentStopping,
                 AgentProblem, SlotProblems, AgentLeft, AllocationUpdated, HarnessAttached, ReportValidation,
                 ReportCheckpoint, ReportDamage, ReportProgress, ReportInvalidHp, AcknowledgePreemption,
                 HarnessAlive, EndTrial, TakeUpTrial, CancelRetries, ExcludeAgent, AskToLeave, MarkDaemon,
                 PilotState, ProviderState, Tick>;

}  // namespace det::core
