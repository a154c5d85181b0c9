// Owns the core's state and the list of its rules; private to this folder. One source per noun:
// experiments.cc, trials.cc, commands.cc, allocations.cc, agents.cc, pools.cc, queue.cc; reports.cc (what
// harnesses say), restore.cc (start), core.cc (dispatch, flush).
//
// A step: begin → handler (refuses first, then changes) → settle (searcher events until quiet) → flush (rows
// of all that was touched, then the step's own inserts; ended things leave memory).
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
  struct Search {
    searcher::Searcher searcher;
    /// As submitted, but with the totals of today: what harnesses are given.
    std::shared_ptr<const expconf::ExperimentConfig> config;
    std::optional<searcher::Shutdown> shutdown;
    std::vector<TrialId> trials;  ///< by their number; 0 for one that an ending experiment never made
    std::size_t open = 0;         ///< trials that have not ended
  };
  enum class TimerKind { kAgent, kAllocation, kTrial, kRetry };
  using TimerKey = std::pair<TimerKind, std::string>;

  Options options;
  std::map<ExperimentId, Experiment> experiments;
  std::map<ExperimentId, Search> searches;
  std::map<RequestId, ExperimentId> requests;  ///< of live experiments, and of those in `ended_requests`
  /// The newest to end: a repeated submission that passed the API's look into the store just before its
  /// experiment ended must still find it here.
  std::deque<RequestId> ended_requests;
  /// Of experiments that ended after they were taken up again: how many events they had. Older rows are
  /// stale.
  std::map<ExperimentId, std::int64_t> ended_again;
  // By hash, what comes by the 100,000: in a tree every second look at the way down misses the cache. So no
  // rule may depend on the order in which these are walked.
  std::unordered_map<TrialId, Trial> trials;
  std::map<CommandId, Command> commands;
  std::map<TaskId, CommandId> command_tasks;  ///< of live commands, and of those in `ended_commands`
  std::deque<TaskId> ended_commands;          ///< the newest to end, as `ended_requests`
  std::unordered_map<AllocationId, Allocation> allocations;
  std::unordered_map<TrialId, Allocation*> live;  ///< the allocation of each trial and command that has one
  std::map<TrialId, int> failed_starts;  ///< allocations in a row that were lost at once, or want storage
  std::unordered_set<TrialId> waiting;   ///< trials and commands that want slots
  std::map<std::string, scheduler::Scheduler> pools;  ///< told of every change
  std::set<std::string> dirty;                        ///< pools whose slots or requests changed
  std::set<int> ports;                                ///< where live gangs meet
  std::map<AgentId, Agent> agents;
  std::unordered_map<AgentId, Agent*>
      agent_named;  ///< all of these: every start and end asks, and the map is one of strings
  std::map<AgentId, AgentSettings> agent_settings;
  std::unordered_map<AgentId, std::set<AllocationId>>
      on_agent;  ///< by agent: what has a part there that has not ended
  Timers<TimerKey> timers;
  ExperimentId next_experiment{1};
  TrialId next_trial{1};
  CommandId next_command{1};

  // Of the step in progress.
  Now now{};
  Effects* out = nullptr;
  std::map<ExperimentId, std::string> fresh_experiments;  ///< with their original configuration
  std::set<ExperimentId> touched_experiments, ended_experiments;
  std::set<TrialId> touched_trials;
  std::set<CommandId> touched_commands;
  struct ById {
    bool operator()(const Allocation* a, const Allocation* b) const { return a->id < b->id; }
  };
  std::set<Allocation*, ById> touched_allocations;
  std::vector<Write> inserts;
  std::vector<Write> late;  ///< of kMetricAfterDecision: to be written with the next step
  std::deque<std::pair<ExperimentId, searcher::Event>> events;

  bool is(Mutant mutant) const { return options.mutant == mutant; }

  // core.cc
  void begin(Now when, Effects& effects);
  void settle();
  void flush();
  void reply(ReplyTo to, Result<ReplyValue> value);
  void log(const TaskId& task, RunNumber run, std::string text, std::string level = "INFO");
  void log(const Trial& trial, RunNumber run, std::string text, std::string level = "INFO");
  void log(const Allocation& allocation, std::string text, std::string level = "INFO");
  void handle(const Tick& input);

  // pools.cc
  scheduler::Scheduler& pool(const std::string& name);
  scheduler::Agent to_scheduler(const Agent& agent) const;
  void tell_agent(const Agent& agent);
  void tell_job(const Experiment& experiment);
  void tell_request(const Trial& trial);
  void tell_running(const Allocation& allocation);
  void tell_leaving(const Allocation& allocation);
  void tell_ended(const Allocation& allocation);
  void schedule_pool(const std::string& name);
  const std::string& pool_of(const Experiment& experiment) const;
  const std::string& pool_of(const Command& command) const;
  static QueuePlace place_of(const expconf::ExperimentConfig& config, WallTime submitted);

  // queue.cc
  void handle(const UpdateJob& input);
  void handle(const SetService& input);
  struct Place;
  Result<Place> find_place(ExperimentId job);
  Status check(const UpdateJob& input, const Place& place);
  void tell_place(ExperimentId job);
  void move_to(Experiment& experiment, const std::string& name);
  void place(const std::vector<scheduler::Job>& moved);
  std::vector<scheduler::Job> jobs_of(const std::string& name) const;
  scheduler::Job to_scheduler(const Experiment& experiment) const;

  // restore.cc
  Status restore(Recovered recovered);
  Result<Search> make_search(const Experiment& experiment, const Recovered::SearcherLog& log) const;
  static Status number_trials(const Experiment& experiment, Search& search, std::vector<Trial>& trials);
  Status restore_allocation(Allocation allocation);
  Status check_allocation(const Allocation& allocation) const;
  Status restore_part(const Allocation& allocation, const AllocationPart& part);

  // experiments.cc
  void handle(const SubmitExperiment& input);
  void handle(const ActOnExperiment& input);
  void pause(Experiment& experiment);
  void activate(Experiment& experiment);
  void stop(Experiment& experiment, State stopping);
  void take(ExperimentId id, const searcher::Event& event);
  void act(Experiment& experiment, const searcher::Action& action);
  /// Null when the search's wish for it came too late.
  Trial* trial_of(ExperimentId experiment, searcher::TrialNumber number);
  void end_if_done(ExperimentId id);
  void update_progress(Experiment& experiment);
  void report_progress(const Trial& trial);

  // extend.cc
  void handle(const ContinueSearch& input);
  void handle(const BarExperiment& input);
  Status take_up(const Recovered& rows);
  void forget(ExperimentId id);
  void reopen(Trial& trial);

  // trials.cc
  void handle(const KillTrial& input);
  void handle(const EndTrial& input);
  void handle(const TakeUpTrial& input);
  void create_trial(Experiment& experiment, const searcher::Create& create);
  void begin_from_checkpoint(Trial& trial);
  /// A second after the second failure in a row, then twice as long each time, as many times as that.
  void request_slots_later(Trial& trial, const std::string& why, int most_doublings);
  void retry(TrialId id);
  void hold(Trial& trial);
  void go_on(Trial& trial);
  void request_slots(Trial& trial);
  void withdraw(const Trial& trial);
  void stop(Trial& trial, State stopping);
  void end(Trial& trial, State end);
  bool unmanaged(const Trial& trial) const { return experiments.at(trial.experiment).unmanaged; }
  void heard(const Trial& trial);
  void give_up(Trial& trial);
  void decide(Trial& trial, const Allocation& allocation);
  const expconf::ExperimentConfig& config_of(const Trial& trial) const;

  // commands.cc
  void handle(const SubmitCommand& input);
  void handle(const KillCommand& input);
  void request_slots(Command& command);
  void withdraw(const Command& command);
  void kill(Command& command);
  void decide(Command& command, const Allocation& allocation);
  void end(Command& command, State end);
  void forget_if_ended(CommandId id);
  void move_to(Command& command, const std::string& name);
  void tell_job(const Command& command);
  void tell_request(const Command& command);
  scheduler::Job to_scheduler(const Command& command) const;
  Status restore_commands(std::vector<Command> rows);
  Status check_allocation(const Command& command, const Allocation& allocation) const;

  // allocations.cc
  void assign(Trial& trial, const std::vector<scheduler::Part>& parts);
  void assign(Command& command, const std::vector<scheduler::Part>& parts);
  void allocate(const TaskId& task, TrialId trial, RunNumber run, const std::vector<scheduler::Part>& parts);
  int port_for(const Allocation& allocation) const;
  void send_start(const Allocation& allocation, const AllocationPart& part, const Agent& agent);
  void ask_to_leave(Allocation& allocation, const std::string& why);
  void kill(Allocation& allocation, const std::string& why);
  void send_kill(const Allocation& allocation);
  void send_kill(const Allocation& allocation, const AllocationPart& part);
  void advance(Allocation& allocation, AllocationState state);
  void advance(Allocation& allocation, AllocationPart& part, AllocationState state);
  void finish(Allocation& allocation, AllocationPart& part, Exit exit);
  void finish(Allocation& allocation);
  void end_the_others(Allocation& allocation, const std::string& why, const std::string& level);
  void excuse(Allocation& allocation);
  void name_exit(Allocation& allocation);
  void look_at_deadlines(Allocation& allocation);
  /// When its parts on silent agents are waited for no longer; nothing unless a user wants its trial or
  /// command gone.
  std::optional<MonoTime> abandoned_at(const Allocation& allocation) const;
  void abandon(Allocation& allocation);
  void set_timer(const Allocation& allocation);
  Allocation* live_allocation(TrialId trial);

  // agents.cc
  void handle(const AgentConnected& input);
  void handle(const AgentDisconnected& input);
  void handle(const AllocationUpdated& input);
  Status check_connection(const AgentConnected& input) const;
  void reconcile(const AgentConnected& input);
  void update(Agent& agent, const HeldAllocation& held);
  void set_leftover(Agent& agent, const AllocationId& id, bool there);
  void lose(Agent& agent);
  Agent& add_agent(const AgentId& id);  ///< the one that is there, if it is
  Agent* find_agent(const AgentId& id) const;
  Duration agent_wait() const;

  // reports.cc
  Result<Trial*> fence(TrialId trial, RunNumber run);
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
