// Effects of a step as plain values: rows to write (in order, one transaction a step), and messages and
// replies that are released once these rows are durable. The core performs none of them; master/loop and the
// edges do.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "master/core/input.h"
#include "master/core/model.h"

namespace det::core {

// ---- Writes ----

/// Upserts an experiment by id. The configuration and the user's text of it are written only with the first
/// row.
struct PutExperiment {
  Experiment row;
  bool first = false;                ///< the experiment is new
  std::string original_config = {};  ///< with `first`: the text that the user submitted
};
/// Upserts a trial.
struct PutTrial {
  Trial row;
};
/// Upserts a command.
struct PutCommand {
  Command row;
};
/// Upserts an allocation. Deadlines (MonoTime) are not stored.
struct PutAllocation {
  Allocation row;
};
/// Upserts the settings of an agent.
struct PutAgentSettings {
  AgentSettings row;
};
/// Deletes the settings of an ephemeral agent that is gone, and the certificates and tokens that it had when
/// it connected. Later ones belong to another machine; revoked ones stay revoked.
struct DeleteAgent {
  AgentId agent;
  WallTime connected;
};
/// Upserts a quota, or deletes it.
struct PutQuota {
  Quota row;
  bool removed = false;
};
/// Upserts a pilot.
struct PutPilot {
  Pilot row;
};
/// Records the number of slots that an agent contributes to a pool from `at` on. Counts disabled slots; 0
/// when the agent is lost.
struct PutCapacity {
  AgentId agent;
  std::string pool;
  std::int64_t slots = 0;
  WallTime at;
};
/// Appends one event to the log of an experiment's searcher. Replaying the log rebuilds the searcher.
struct AppendSearcherEvent {
  ExperimentId experiment;
  std::int64_t number = 0;  ///< from 0, without gaps
  std::string event;        ///< JSON
};
/// Stores the state of a searcher after `number` events. A restart replays only later events; the older ones
/// remain for audit.
struct PutSearcherSnapshot {
  ExperimentId experiment;
  std::int64_t number = 0;
  std::string snapshot;  ///< JSON
};
/// Inserts a validation. Key: (trial, run, "validation", steps_completed).
struct InsertValidation {
  TrialId trial;
  RunNumber run = 0;
  std::int64_t steps_completed = 0;
  std::string metrics;
  std::optional<double> searcher_metric;
  WallTime reported;
};
/// Inserts a checkpoint. Key: uuid.
struct InsertCheckpoint {
  CheckpointId uuid;
  TrialId trial;
  RunNumber run = 0;
  TaskId task;
  AllocationId allocation;
  std::int64_t steps_completed = 0;
  std::string resources;
  std::string metadata;
  WallTime reported;
};
/// Marks a checkpoint as damaged: its files differ from what was saved, and no run starts from it any more.
struct MarkDamaged {
  CheckpointId uuid;
  TrialId trial;
};
/// Archives the metrics of earlier runs with more than `beyond` steps, because a new run starts there.
/// Archived rows are kept and never shown.
struct ArchiveMetrics {
  TrialId trial;
  std::int64_t beyond = 0;
};
/// Appends a line of the master to the log of a task.
struct AppendTaskLog {
  TaskId task;
  AllocationId allocation;
  std::string level;
  std::string text;
  WallTime time;
};

using Write = std::variant<PutExperiment, PutTrial, PutCommand, PutAllocation, PutAgentSettings, DeleteAgent,
                           PutCapacity, AppendSearcherEvent, PutSearcherSnapshot, InsertValidation,
                           InsertCheckpoint, MarkDamaged, ArchiveMetrics, AppendTaskLog, PutPilot, PutQuota>;

// ---- Messages (released when the writes of the same step are durable) ----
//
// `session` is the connection of the agent that the message is meant for; a message for an older one is
// dropped.

/// To an agent: prepare and run one part of an allocation. Idempotent: an agent that has the allocation
/// replies with its state.
struct StartAllocation {
  AgentId agent;
  std::uint64_t session = 0;
  Allocation allocation;
  int part = 0;  ///< index in Allocation::parts
  Trial trial;
  ExperimentId experiment;
  std::shared_ptr<const expconf::ExperimentConfig> config;
  std::string code_archive;        ///< SHA-256 (hex) of the code archive; "" when there is none
  std::optional<Command> command;  ///< set for a command; `trial`, `experiment` and `config` are then empty
  /// Secret of the processes of this part. Only its hash is kept (AllocationPart::token_hash), so a repeated
  /// start has another token.
  std::string token;
  /// SHA-256 (hex) of the library that the code was built to; "" if unknown.
  std::string library = {};
};
/// To an agent: send SIGTERM to the process group, and SIGKILL after the agent's kill grace. Idempotent.
struct KillAllocation {
  AgentId agent;
  std::uint64_t session = 0;
  AllocationId allocation;
};
/// To an agent: the exit of the allocation is durable, or its id is unknown. The agent may drop its records.
struct AllocationForgotten {
  AgentId agent;
  std::uint64_t session = 0;
  AllocationId allocation;
};
/// To an agent: check the device of a slot. Answered by SlotProblems. Idempotent.
struct CheckSlot {
  AgentId agent;
  std::uint64_t session = 0;
  int slot = 0;
  std::int64_t number = 0;  ///< counts from 1 in a session
};
/// To a harness: save a checkpoint at the next batch boundary and exit. Idempotent.
struct PreemptAllocation {
  AllocationId allocation;
};

/// To an engine: submit a pilot, unless a job of that name exists. Idempotent. Repeated until its PilotState
/// arrives.
struct SubmitPilot {
  std::string pool;
  std::string name;
  int nodes = 1;
  int slots = 0;  ///< slots that work will use on each node
};
/// To an engine: cancel the jobs of that name. Idempotent. Repeated until the pilot has ended.
struct CancelPilot {
  std::string pool;
  std::string name;
};

using Send = std::variant<StartAllocation, KillAllocation, AllocationForgotten, CheckSlot, PreemptAllocation,
                          SubmitPilot, CancelPilot>;

// ---- Replies ----

/// Success without a value.
struct Done {};
/// Reply to SubmitExperiment.
struct ExperimentCreated {
  ExperimentId experiment;
  bool repeated = false;  ///< the request_id had been used: this is the earlier experiment
};
/// Reply to AgentConnected: the session is open.
struct AgentAccepted {};
/// Reply to HarnessAttached.
struct Attached {
  bool preempt = false;  ///< the allocation has been preempted
};
/// Reply to ReportDamage: the checkpoint from which the run starts.
struct ResumeFrom {
  std::string checkpoint;  ///< uuid; "" to start from the beginning
  std::int64_t steps_completed = 0;
};
using ReplyValue = std::variant<Done, ExperimentCreated, AgentAccepted, Attached, ResumeFrom>;
/// The answer to the caller of an input.
struct Reply {
  ReplyTo to = 0;
  Result<ReplyValue> value;
};

/// The effects of one or more steps, in order.
/// Rows come before the messages and replies that depend on them, so a consumer may release the latter as
/// soon as the rows are durable.
struct Effects {
  std::vector<Write> writes;
  std::vector<Send> sends;
  std::vector<Reply> replies;
};

}  // namespace det::core
