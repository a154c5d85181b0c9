// State and functions of the core; private to master/core. Same single thread as Core.
//
//   experiments.cc  life of experiments: submission, user actions, searcher events and actions
//   extend.cc       continuing a search that runs or has ended
//   trials.cc       life of trials: creation, requests for slots, restarts
//   commands.cc     life of commands
//   allocations.cc  life of allocations: assignment, preemption, kill, exit
//   agents.cc       agent sessions, reconciliation, loss
//   reports.cc      reports of harnesses, fenced by run
//   pools.cc        updates and decisions of the pools' schedulers
//   queue.cc        queue settings, agents and slots in and out of service
//   restore.cc      start from stored rows
//   core.cc         dispatch, settle, flush, timers
//
// A step: begin → handler (all checks first, then changes) → settle (searcher events until there are none) →
// flush (a row for each touched object, then the step's own inserts; ended objects leave memory).
#pragma once

#include <deque>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "master/core/core.h"
#include "master/core/timers.h"

namespace det::core {

struct Core::Impl {
  /// The search of an experiment.
  struct Search {
    searcher::Searcher searcher;
    /// The submitted configuration with the current totals (extended searches). Harnesses get this one.
    std::shared_ptr<const expconf::ExperimentConfig> config;
    /// Set once the search has ended.
    std::optional<searcher::Shutdown> shutdown;
    /// Trials by number. 0 for a trial that was never created, because the experiment was ending.
    std::vector<TrialId> trials;
    std::size_t open = 0;  ///< number of trials that have not ended
  };
  enum class TimerKind {
    kAgent,       ///< a disconnected agent is lost
    kAllocation,  ///< a preemption becomes a kill, a kill is repeated, or an allocation is abandoned
    kTrial,       ///< an unmanaged trial sent no report for too long
    kRetry        ///< end of a trial's back-off
  };
  /// The kind and the id of the object, as text.
  using TimerKey = std::pair<TimerKind, std::string>;

  // Live objects and their indexes. `experiments`, `searches` and `trials` stay until the end of the
  // experiment, commands and allocations until their own.

  Options options;
  std::map<ExperimentId, Experiment> experiments;
  std::map<ExperimentId, Search> searches;
  /// Idempotency keys of live experiments and of those in `ended_requests`.
  std::map<RequestId, ExperimentId> requests;
  /// Keys of the newest experiments to end (bounded). A repeated submission may have passed the API's check
  /// of the store just before its experiment ended.
  std::deque<RequestId> ended_requests;
  /// For experiments that were continued after their end, or barred from it: the number of searcher events at
  /// the newest end. Rows with fewer events are stale and cannot be continued.
  std::map<ExperimentId, std::int64_t> ended_again;
  // Hash tables where there may be 100,000 objects: the way down a tree costs a cache miss at every second
  // level. The iteration order is arbitrary, so no decision and no effect may depend on it.
  std::unordered_map<TrialId, Trial> trials;
  std::map<CommandId, Command> commands;
  std::map<TaskId, CommandId> command_tasks;  ///< live commands and those in `ended_commands`
  std::deque<TaskId> ended_commands;          ///< the newest commands to end (bounded), see `ended_requests`
  std::unordered_map<AllocationId, Allocation> allocations;
  /// The allocation of each trial and command that has one.
  std::unordered_map<TrialId, Allocation*> live;
  /// Consecutive allocations of a trial that were lost before they attached, or exited because the storage
  /// was full.
  std::map<TrialId, int> failed_starts;
  /// Trials and commands with a request in a scheduler.
  std::unordered_set<TrialId> waiting;
  std::map<std::string, scheduler::Scheduler> pools;
  std::set<std::string> dirty;  ///< pools to decide on in the next `schedule`
  std::set<int> ports;          ///< ports of live gangs
  std::map<AgentId, Agent> agents;
  /// Hash index of `agents`, which is looked up at every start and end of an allocation.
  std::unordered_map<AgentId, Agent*> agent_named;
  std::map<AgentId, AgentSettings> agent_settings;
  /// Allocations with a live part on the agent.
  std::unordered_map<AgentId, std::set<AllocationId>> on_agent;
  Timers<TimerKey> timers;
  // The smallest ids that have never been used.
  ExperimentId next_experiment{1};
  TrialId next_trial{1};
  CommandId next_command{1};

  // State of the step in progress; empty between steps, except `late`.

  Now now{};
  Effects* out = nullptr;
  /// New experiments with the user's text of their configuration.
  std::map<ExperimentId, std::string> fresh_experiments;
  // Objects to write at the end of the step. Ordered sets: the order of rows must not depend on addresses.
  std::set<ExperimentId> touched_experiments, ended_experiments;
  std::set<TrialId> touched_trials;
  std::set<CommandId> touched_commands;
  struct ById {
    bool operator()(const Allocation* a, const Allocation* b) const { return a->id < b->id; }
  };
  std::set<Allocation*, ById> touched_allocations;
  /// Rows that follow those of the touched objects, in the order of the step.
  std::vector<Write> inserts;
  std::vector<Write> late;  ///< Mutant::kMetricAfterDecision: rows for the next step
  /// Events for searchers, delivered by `settle`.
  std::deque<std::pair<ExperimentId, searcher::Event>> events;

  bool is(Mutant mutant) const { return options.mutant == mutant; }

  // core.cc

  /// Begins a step.
  void begin(Now when, Effects& effects);
  /// Delivers searcher events, and those that follow from them, until there are none; then ends experiments
  /// that are done.
  void settle();
  /// Appends the rows of all touched objects and removes ended objects from memory.
  void flush();
  /// Appends a reply; no effect for the caller 0.
  void reply(ReplyTo to, Result<ReplyValue> value);
  // Each appends a line to the task log of a run.
  void log(const TaskId& task, RunNumber run, std::string text, std::string level = "INFO");
  void log(const Trial& trial, RunNumber run, std::string text, std::string level = "INFO");
  void log(const Allocation& allocation, std::string text, std::string level = "INFO");
  void handle(const Tick& input);

  // pools.cc

  /// Returns the scheduler of a pool, and creates it with the pool's rules on first use.
  scheduler::Scheduler& pool(const std::string& name);
  /// Converts an agent. It is open when it is connected, enabled, not draining and without leftovers.
  scheduler::Agent to_scheduler(const Agent& agent) const;
  // The tell_ functions update the scheduler of a pool and mark the pool as dirty (except tell_running, which
  // only a restart uses). A scheduler is never rebuilt: each change of the core must be followed by its
  // update.
  void tell_agent(const Agent& agent);
  void tell_job(const Experiment& experiment);
  void tell_request(const Trial& trial);
  void tell_running(const Allocation& allocation);
  void tell_leaving(const Allocation& allocation);
  void tell_ended(const Allocation& allocation);
  /// Decides on a pool and carries the decision out.
  void schedule_pool(const std::string& name);
  /// The pool of a job, with the default for "".
  const std::string& pool_of(const Experiment& experiment) const;
  const std::string& pool_of(const Command& command) const;
  /// Returns the queue settings of a new experiment.
  static QueuePlace place_of(const expconf::ExperimentConfig& config, WallTime submitted);

  // queue.cc
  void handle(const UpdateJob& input);
  void handle(const SetService& input);
  struct Place;
  /// Finds the queue settings of a live experiment or command. Errors: kNotFound.
  Result<Place> find_place(ExperimentId job);
  /// Validates an update. Errors: see UpdateJob.
  Status check(const UpdateJob& input, const Place& place);
  /// Stores the queue settings of a job and updates its scheduler.
  void tell_place(ExperimentId job);
  /// Moves an experiment to another pool; its allocations are preempted.
  void move_to(Experiment& experiment, const std::string& name);
  /// Applies the priorities and positions of scheduler::move.
  void place(const std::vector<scheduler::Job>& moved);
  /// Returns the jobs of a pool.
  std::vector<scheduler::Job> jobs_of(const std::string& name) const;
  scheduler::Job to_scheduler(const Experiment& experiment) const;

  // restore.cc. Errors: kDataLoss (the rows contradict each other).

  Status restore(Recovered recovered);
  /// Rebuilds a searcher from its snapshot and the events after it.
  Result<Search> make_search(const Experiment& experiment, const Recovered::SearcherLog& log) const;
  /// Assigns their numbers to the stored trials of an experiment.
  static Status number_trials(const Experiment& experiment, Search& search, std::vector<Trial>& trials);
  Status restore_allocation(Allocation allocation);
  /// Checks that an allocation belongs to the current run of a live trial or command.
  Status check_allocation(const Allocation& allocation) const;
  /// Claims the slots of a live part and starts the lease of its agent.
  Status restore_part(const Allocation& allocation, const AllocationPart& part);

  // experiments.cc
  void handle(const SubmitExperiment& input);
  void handle(const ActOnExperiment& input);
  /// Withdraws the requests of all trials and preempts their allocations.
  void pause(Experiment& experiment);
  void activate(Experiment& experiment);
  /// Brings an experiment and its trials into a stopping state.
  void stop(Experiment& experiment, State stopping);
  /// Delivers an event to the searcher, stores it and carries the resulting actions out.
  void take(ExperimentId id, const searcher::Event& event);
  void act(Experiment& experiment, const searcher::Action& action);
  /// Returns a trial by number; null when it was never created, because the experiment was ending.
  Trial* trial_of(ExperimentId experiment, searcher::TrialNumber number);
  /// Ends an experiment when all its trials have ended and its search is over or it is stopping.
  void end_if_done(ExperimentId id);
  void update_progress(Experiment& experiment);
  void report_progress(const Trial& trial);

  // extend.cc
  void handle(const ContinueSearch& input);
  void handle(const BarExperiment& input);
  /// Loads an ended experiment back into memory, still in its terminal state.
  Status take_up(const Recovered& rows);
  /// Removes an ended experiment and its trials from memory.
  void forget(ExperimentId id);
  /// Brings an ended trial back into the state of its experiment, with its restarts reset.
  void reopen(Trial& trial);

  // trials.cc
  void handle(const KillTrial& input);
  void handle(const EndTrial& input);
  void handle(const TakeUpTrial& input);
  void create_trial(Experiment& experiment, const searcher::Create& create);
  /// Resets a trial to its newest checkpoint for a new run; metrics beyond it are archived.
  void begin_from_checkpoint(Trial& trial);
  /// Requests slots with exponential back-off: at once after the first failure, 1 s after the second, then
  /// twice as long each time, with at most `most_doublings` doublings.
  void request_slots_later(Trial& trial, const std::string& why, int most_doublings);
  /// The back-off has ended.
  void retry(TrialId id);
  /// Takes the slots of a trial that waits at a rung.
  void hold(Trial& trial);
  /// Resumes a held trial, or reopens an ended one.
  void go_on(Trial& trial);
  void request_slots(Trial& trial);
  /// Withdraws the request for slots, if there is one.
  void withdraw(const Trial& trial);
  /// Brings a trial into a stopping state. Ends it at once when it has no allocation. No effect when the
  /// change is illegal (the trial is ending more severely, or has ended).
  void stop(Trial& trial, State stopping);
  /// Ends a trial and queues the event for its searcher.
  void end(Trial& trial, State end);
  bool unmanaged(const Trial& trial) const { return experiments.at(trial.experiment).unmanaged; }
  /// Restarts the deadline of an unmanaged trial after a report.
  void heard(const Trial& trial);
  /// Fails an unmanaged trial that sent no report until its deadline.
  void give_up(Trial& trial);
  /// Decides after the end of an allocation: end the trial, or run it again.
  void decide(Trial& trial, const Allocation& allocation);
  const expconf::ExperimentConfig& config_of(const Trial& trial) const;

  // commands.cc
  void handle(const SubmitCommand& input);
  void handle(const KillCommand& input);
  void request_slots(Command& command);
  void withdraw(const Command& command);
  void kill(Command& command);
  /// Ends a command after its allocation.
  void decide(Command& command, const Allocation& allocation);
  void end(Command& command, State end);
  /// Removes an ended command from memory and from its scheduler.
  void forget_if_ended(CommandId id);
  void move_to(Command& command, const std::string& name);
  void tell_job(const Command& command);
  void tell_request(const Command& command);
  scheduler::Job to_scheduler(const Command& command) const;
  Status restore_commands(std::vector<Command> rows);
  Status check_allocation(const Command& command, const Allocation& allocation) const;

  // allocations.cc
  /// Begins a new run of a trial on the given slots.
  void assign(Trial& trial, const std::vector<scheduler::Part>& parts);
  void assign(Command& command, const std::vector<scheduler::Part>& parts);
  void allocate(const TaskId& task, TrialId trial, RunNumber run, const std::vector<scheduler::Part>& parts);
  /// Returns the meeting port of a gang; 0 for an allocation of one part.
  int port_for(const Allocation& allocation) const;
  void send_start(const Allocation& allocation, const AllocationPart& part, const Agent& agent);
  /// Preempts: requests a checkpoint and an exit within preemption_timeout. Kills when no harness is
  /// attached.
  void ask_to_leave(Allocation& allocation, const std::string& why);
  /// Kills all parts, now and again every kill_repeat until they have exited.
  void kill(Allocation& allocation, const std::string& why);
  void send_kill(const Allocation& allocation);
  void send_kill(const Allocation& allocation, const AllocationPart& part);
  // Both advance a state; an earlier state than the current one is ignored.
  void advance(Allocation& allocation, AllocationState state);
  void advance(Allocation& allocation, AllocationPart& part, AllocationState state);
  /// Ends a part. Kills the other parts when it failed, and ends the allocation after the last part.
  void finish(Allocation& allocation, AllocationPart& part, Exit exit);
  /// Ends an allocation: frees its slots and decides what follows for its trial or command.
  void finish(Allocation& allocation);
  /// Kills the live parts of an allocation that has lost a part or has only daemons left.
  void end_the_others(Allocation& allocation, const std::string& why, const std::string& level);
  /// Reclassifies the failure of a gang as kLost when one of its agents is lost or disconnected.
  void excuse(Allocation& allocation);
  /// Refines the exit by what the harness reported: kInvalidHp, kPreempted.
  void name_exit(Allocation& allocation);
  /// Handles the timer of an allocation.
  void look_at_deadlines(Allocation& allocation);
  /// Returns when parts on disconnected agents are no longer waited for; empty unless a user canceled or
  /// killed the trial or command.
  std::optional<MonoTime> abandoned_at(const Allocation& allocation) const;
  /// Ends the parts on disconnected agents without their exits.
  void abandon(Allocation& allocation);
  /// Sets the timer to the earliest deadline of an allocation.
  void set_timer(const Allocation& allocation);
  /// Returns the allocation of a trial or command, or null.
  Allocation* live_allocation(TrialId trial);

  // agents.cc
  void handle(const AgentConnected& input);
  void handle(const AgentDisconnected& input);
  void handle(const AllocationUpdated& input);
  /// Checks that the machine is the one known by this name, with unchanged devices. Errors: see
  /// AgentConnected.
  Status check_connection(const AgentConnected& input) const;
  /// Compares the allocations that an agent holds with those that are expected there.
  void reconcile(const AgentConnected& input);
  /// Applies the reported state of one allocation.
  void update(Agent& agent, const HeldAllocation& held);
  /// Adds or removes a leftover; the agent is closed for new work while it has any.
  void set_leftover(Agent& agent, const AllocationId& id, bool there);
  /// Removes an agent; its parts end as kLost.
  void lose(Agent& agent);
  /// Returns the agent, and creates it when it does not exist.
  Agent& add_agent(const AgentId& id);
  /// Returns the agent, or null.
  Agent* find_agent(const AgentId& id) const;
  Duration agent_wait() const;

  // reports.cc

  /// Returns the trial when `run` is its current one and it is running. Every report passes here first.
  /// Errors: kAborted.
  Result<Trial*> fence(TrialId trial, RunNumber run);
  /// Queues a validation for the searcher; handles a report that lacks the searcher's metric.
  void tell_search(Trial& trial, const ReportValidation& report);
  void handle(const HarnessAttached& input);
  void handle(const ReportValidation& input);
  void handle(const ReportCheckpoint& input);
  void handle(const ReportDamage& input);
  void handle(const ReportProgress& input);
  void handle(const ReportInvalidHp& input);
  void handle(const AcknowledgePreemption& input);
  void handle(const HarnessAlive& input);
  void handle(const AskToLeave& input);
  void handle(const MarkDaemon& input);
};

}  // namespace det::core
