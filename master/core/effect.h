// Owns everything the core can ask of the world: rows to write (in order, one transaction a step), messages
// and replies to release once those rows are durable. Effects are values; performing them is the edges' work.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "master/core/input.h"
#include "master/core/model.h"

namespace det::core {

// ---- writes
// ------------------------------------------------------------------------------------------------------

/// Upserts by id; the row is the struct. The config, and the user's text of it, are written with the first
/// row alone.
struct PutExperiment {
  Experiment row;
  bool first = false;
  std::string original_config = {};
};
struct PutTrial {
  Trial row;
};
struct PutCommand {
  Command row;
};
struct PutAllocation {
  Allocation row;
};
struct PutAgentSettings {
  AgentSettings row;
};
/// From now on an agent brings so many slots to a pool, those out of service among them; 0: it is gone.
struct PutCapacity {
  AgentId agent;
  std::string pool;
  std::int64_t slots = 0;
  WallTime at;
};
/// One event of an experiment's searcher, in the order taken; replaying them rebuilds the searcher.
struct AppendSearcherEvent {
  ExperimentId experiment;
  std::int64_t number = 0;
  std::string event;
};
/// The searcher after `number` events; older events are then needed only for audit.
struct PutSearcherSnapshot {
  ExperimentId experiment;
  std::int64_t number = 0;
  std::string snapshot;
};
/// A validation row; (trial, run, "validation", steps) is its key.
struct InsertValidation {
  TrialId trial;
  RunNumber run = 0;
  std::int64_t steps_completed = 0;
  std::string metrics;
  std::optional<double> searcher_metric;
  WallTime reported;
};
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
/// Its files are not what was saved: nothing goes on from it any more.
struct MarkDamaged {
  CheckpointId uuid;
  TrialId trial;
};
/// A new run starts at `beyond` steps: rows of earlier runs with more steps become archived (never shown,
/// kept).
struct ArchiveMetrics {
  TrialId trial;
  std::int64_t beyond = 0;
};
/// A line the master adds to a task's log.
struct AppendTaskLog {
  TaskId task;
  AllocationId allocation;
  std::string level;
  std::string text;
  WallTime time;
};

using Write = std::variant<PutExperiment, PutTrial, PutCommand, PutAllocation, PutAgentSettings, PutCapacity,
                           AppendSearcherEvent, PutSearcherSnapshot, InsertValidation, InsertCheckpoint,
                           MarkDamaged, ArchiveMetrics, AppendTaskLog>;

// ---- sends (released when the writes of the same step are durable)
// -------------------------------------------------

/// To an agent: prepare and run this. Repeats safely: an agent that knows the id answers with its state.
struct StartAllocation {
  AgentId agent;
  std::uint64_t session = 0;
  Allocation allocation;
  int part = 0;  ///< which of its parts
  Trial trial;
  ExperimentId experiment;
  std::shared_ptr<const expconf::ExperimentConfig> config;
  std::string model_definition;
  std::optional<Command> command;  ///< it is one; then `trial`, `experiment` and `config` say nothing
};
/// To an agent: SIGTERM to the process group, SIGKILL after the agent's grace. Repeats safely.
struct KillAllocation {
  AgentId agent;
  std::uint64_t session = 0;
  AllocationId allocation;
};
/// To an agent: the exit is durable (or nobody knows the id): it may drop what it keeps of it.
struct AllocationForgotten {
  AgentId agent;
  std::uint64_t session = 0;
  AllocationId allocation;
};
/// To a harness: checkpoint at the next batch boundary and leave. Repeats safely.
struct PreemptAllocation {
  AllocationId allocation;
};

using Send = std::variant<StartAllocation, KillAllocation, AllocationForgotten, PreemptAllocation>;

// ---- replies
// -----------------------------------------------------------------------------------------------------

struct Done {};
struct ExperimentCreated {
  ExperimentId experiment;
  bool repeated = false;
};
struct AgentAccepted {};
struct Attached {
  bool preempt = false;
};
struct ResumeFrom {
  std::string checkpoint;
  std::int64_t steps_completed = 0;
};  ///< "" is nothing
using ReplyValue = std::variant<Done, ExperimentCreated, AgentAccepted, Attached, ResumeFrom>;
struct Reply {
  ReplyTo to = 0;
  Result<ReplyValue> value;
};

struct Effects {
  std::vector<Write> writes;
  std::vector<Send> sends;
  std::vector<Reply> replies;
};

}  // namespace det::core
