#include "tests/sim/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace det::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct Dice {
  Random random;
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool chance(int percent) { return between(0, 99) < percent; }
  Duration between(Duration low, Duration high) { return Duration(between(low.count(), high.count())); }
  int weight(int percent, int most) { return chance(percent) ? static_cast<int>(between(1, most)) : 0; }
};

std::shared_ptr<const expconf::ExperimentConfig> draw_config(Dice& dice, const RequestId& id, int most_on_one,
                                                             int most_slots) {
  auto config = std::make_shared<expconf::ExperimentConfig>();
  config->name = id.value;
  config->experiment_seed = static_cast<std::uint32_t>(dice.random.next());
  config->max_restarts = static_cast<int>(dice.between(0, 3));
  config->preemption_timeout = dice.between(20, 90);
  config->searcher.name = "single";
  config->searcher.metric = "loss";
  config->searcher.smaller_is_better = dice.chance(50);
  expconf::Resources& resources = config->resources;
  resources.is_single_node = dice.chance(30);
  resources.slots_per_trial =
      dice.chance(5) ? 0
                     : static_cast<int>(dice.between(1, resources.is_single_node ? most_on_one : most_slots));
  if (dice.chance(25))
    resources.max_slots = static_cast<int>(dice.between(resources.slots_per_trial, most_slots));
  config->resources.priority = dice.chance(60) ? 42 : static_cast<int>(dice.between(1, 99));
  return config;
}

/// Small searches, so that a run ends. They suffice to expose wrong decisions.
void draw_search(Dice& dice, expconf::SearcherConfig& searcher, std::int64_t total) {
  constexpr const char* kNames[] = {"random", "grid", "async_halving", "adaptive_asha", "async_halving"};
  searcher.name = kNames[dice.between(0, 4)];
  searcher.max_trials = dice.between(1, 7);
  searcher.max_concurrent_trials = dice.between(0, 4);
  searcher.divisor = static_cast<double>(dice.between(2, 4));
  searcher.num_rungs = dice.between(1, 3);
  searcher.max_rungs = dice.between(1, 3);
  constexpr const char* kModes[] = {"aggressive", "standard", "conservative"};
  searcher.mode = kModes[dice.between(0, 2)];
  searcher.max_time = total;
  searcher.time_metric = "batches";
  if (dice.chance(50)) searcher.rung_policy = "promote";
  if (dice.chance(20) && searcher.name != "grid") searcher.sampler = "tpe";
}

/// The smallest search where floating-point logarithms miscount the rungs: ln 243 / ln 3 < 5.
void draw_large_search(Dice& dice, expconf::SearcherConfig& searcher, Job& job) {
  searcher.name = "adaptive_asha";
  searcher.mode = "aggressive";
  searcher.max_trials = 243;
  searcher.max_time = 243;
  job.total = 243;
  searcher.max_rungs = 6;
  searcher.divisor = 3;
  job.chunk = job.validate_every = job.checkpoint_every = 81;
  job.chunk_time = dice.between(milliseconds(200), seconds(1));
}

expconf::HyperparameterMap draw_space(Dice& dice) {
  using Type = expconf::Hyperparameter::Type;
  expconf::HyperparameterMap space;
  space["rate"].type = Type::kDouble;
  space["rate"].max = 1;
  space["width"].type = Type::kInt;
  space["width"].int_max = 9;
  space["rate"].count = space["width"].count = dice.between(1, 3);
  return space;
}

void draw_actions(Dice& dice, Job& job, Duration until) {
  Duration at = job.submit;
  for (auto pauses = dice.chance(40) ? dice.between(1, 3) : 0; pauses > 0; --pauses) {
    at += dice.between(seconds(1), minutes(2));
    job.actions.push_back({at, core::ExperimentAction::kPause});
    at += dice.between(milliseconds(1), minutes(1));
    job.actions.push_back({at, core::ExperimentAction::kActivate});
  }
  if (dice.chance(20)) {
    const bool cancel = dice.chance(50);
    at = job.submit + dice.between(milliseconds(1), minutes(3));
    job.actions.push_back(
        {at, cancel ? core::ExperimentAction::kCancel : core::ExperimentAction::kKill,
         !cancel && dice.chance(30) ? Job::Action::On::kTrial : Job::Action::On::kExperiment});
    if (cancel && dice.chance(30)) {
      job.actions.push_back({at + dice.between(seconds(0), seconds(30)), core::ExperimentAction::kKill});
    }
  }
  // The experiment may have ended at this point or not.
  if (dice.chance(15)) {
    at = std::max(at, dice.between(job.submit, until));
    job.actions.push_back({at, {}, dice.chance(50) ? Job::Action::On::kExtend : Job::Action::On::kRetry});
  }
  // Paused experiments are activated in the end.
  job.actions.push_back({std::max(at, until), core::ExperimentAction::kActivate});
}

Job draw_job(Dice& dice, int number, int most_on_one, int most_slots, Duration until) {
  Job job;
  Random names{dice.random.next(), 0};
  job.id = RequestId("job" + std::to_string(number) + "-" + names.uuid());
  job.damages = names.below(100) < 15;
  // From the job's own stream, like `damages`: the other draws of a seed stay what they were.
  const std::uint64_t kind = names.below(100);
  job.failure = kind < 60   ? Job::Failure::kPlain
                : kind < 75 ? Job::Failure::kFinal
                            : Job::Failure::kRepeatable;
  job.loses_itself = names.below(100) < 3;
  const auto longer = static_cast<std::int64_t>(names.below(8));
  job.submit = dice.between(seconds(0), until / 3);
  job.activate = dice.chance(90);
  job.config = draw_config(dice, job.id, most_on_one, most_slots);
  job.total = 10 * dice.between(2, 12);
  job.chunk_time = dice.between(milliseconds(200), seconds(6));
  job.validate_every = 10 * dice.between(1, 4);
  job.checkpoint_every = 10 * dice.between(1, 5);
  if (dice.chance(35)) {
    job.fail_at = 10 * dice.between(1, job.total / 10);
    job.failures = dice.chance(30) ? std::numeric_limits<int>::max()
                                   : static_cast<int>(dice.between(1, job.config->max_restarts + 1));
  }
  job.ignores_preemption = dice.chance(8);
  job.nan = dice.chance(15);
  job.invalid_hp = dice.chance(5);
  draw_actions(dice, job, until);
  job.hangs = !job.left_alone() && !job.continued() && dice.chance(50);
  job.detached = dice.chance(15);
  if (!job.detached && dice.chance(45)) {
    auto config = std::make_shared<expconf::ExperimentConfig>(*job.config);
    draw_search(dice, config->searcher, job.total);
    if (dice.chance(2)) draw_large_search(dice, config->searcher, job);
    config->hyperparameters = draw_space(dice);
    job.config = std::move(config);
    job.lacks_metric = dice.chance(15);
    // Killing one trial leaves the others running, so programs of such a job must not hang.
    job.hangs =
        job.hangs && std::none_of(job.actions.begin(), job.actions.end(), [](const Job::Action& action) {
          return action.on != Job::Action::On::kExperiment;
        });
    if (longer > 0) job.longer = job.total + longer * job.chunk;
    job.invalid_hp = dice.chance(15);
    job.always_invalid = job.invalid_hp && dice.chance(40);
  }
  return job;
}

CommandPlan draw_command(Dice& dice, int number, int most_on_one, Duration until) {
  CommandPlan plan;
  Random names{dice.random.next(), 1};
  plan.task = TaskId("command" + std::to_string(number) + "-" + names.uuid());
  plan.submit = dice.between(seconds(0), until);
  auto config = std::make_shared<expconf::CommandConfig>();
  config->entrypoint = {"true"};
  config->slots = dice.chance(40) ? 0 : static_cast<int>(dice.between(1, most_on_one));
  config->priority = dice.chance(50) ? 42 : static_cast<int>(dice.between(1, 99));
  plan.config = std::move(config);
  plan.program.chunk_time = dice.between(milliseconds(1), minutes(2));
  plan.program.failures = dice.chance(30) ? 1 : 0;
  if (dice.chance(35)) plan.kill_after = dice.between(milliseconds(1), minutes(2));
  plan.program.hangs = plan.kill_after && dice.chance(60);
  if (dice.chance(25)) plan.pause_after = dice.between(milliseconds(1), minutes(2));
  plan.pause_time = dice.between(milliseconds(1), minutes(1));
  return plan;
}

}  // namespace

bool Job::left_alone() const {
  return std::none_of(actions.begin(), actions.end(),
                      [](const Action& action) { return action.ends() || action.on == Action::On::kTrial; });
}

bool Job::continued() const {
  return std::any_of(actions.begin(), actions.end(), [](const Action& action) {
    return action.on == Action::On::kExtend || action.on == Action::On::kRetry;
  });
}

bool Job::has_invalid_hp(std::uint32_t trial_seed) const {
  return invalid_hp && (!searches() || always_invalid || trial_seed % 3 == 0);
}

bool Job::has_no_metric(std::uint32_t trial_seed) const { return lacks_metric && trial_seed % 3 == 1; }

namespace {

/// Half of the jobs have a trial class to build; some share their code. From a stream of their own, so that
/// the rest of each plan stays what it was.
void draw_builds(Plan& plan, Dice dice) {
  if (!plan.options.providers.empty()) return;
  for (Job& job : plan.jobs) {
    if (!dice.chance(50) || job.detached || job.config->resources.slots_per_trial == 0) continue;
    auto config = std::make_shared<expconf::ExperimentConfig>(*job.config);
    config->entrypoint = {"model_def:Trial"};
    job.config = std::move(config);
    job.code_archive = "archive" + std::to_string(dice.between(1, 3)) + " of " + job.id.value;
    if (dice.chance(40)) {
      job.code_archive = "shared archive";
    } else if (dice.chance(15)) {
      job.build = Job::Build::kRejected;
    } else if (dice.chance(15)) {
      job.build = Job::Build::kFails;
    }
    if (!job.searches() || job.hangs || !dice.chance(50)) continue;
    // Kills the first trial, which builds for the others.
    job.actions.insert(job.actions.begin(), {job.submit + dice.between(milliseconds(1), seconds(4)),
                                             core::ExperimentAction::kKill, Job::Action::On::kTrial});
  }
}

/// Every agent may be excluded: without any one of them, a trial of one slot still has a machine.
bool may_exclude(const Plan& plan, const Job& job) {
  const auto immortals = std::count_if(plan.machines.begin(), plan.machines.end(),
                                       [](const MachinePlan& machine) { return machine.immortal; });
  return !job.detached && job.config->resources.slots_per_trial <= 1 && immortals > 1;
}

/// One job in five has a log policy. From a stream of their own, like the builds.
void draw_log_policies(Plan& plan, Dice dice) {
  for (Job& job : plan.jobs) job.cancels_retries = dice.chance(20) && !job.detached;
  for (Job& job : plan.jobs) job.excludes_agent = dice.chance(40) && may_exclude(plan, job);
}

/// One plan in four has pilots in place of machines. They come from a stream of their own: the other plans
/// stay what they were.
void draw_provider(Plan& plan, Dice dice, int& most_on_one, int& most_slots) {
  if (!dice.chance(25)) return;
  core::PilotRules rules;
  rules.max_pilots = static_cast<int>(dice.between(1, 4));
  rules.slots_per_node = static_cast<int>(dice.between(1, 4));
  rules.max_nodes = static_cast<int>(dice.between(1, 3));
  rules.idle_timeout = dice.between(seconds(10), minutes(2));
  most_on_one = rules.slots_per_node;
  most_slots = rules.slots_per_node * rules.max_nodes;
  if (dice.chance(50)) rules.min_time_left = dice.between(seconds(5), minutes(1));
  rules.per_allocation = dice.chance(35);
  plan.options.providers.emplace(plan.options.default_pool, rules);
  plan.options.cluster = "sim";
  plan.options.pilot_repeat = seconds(10);
  plan.options.pilot_start = minutes(2);
  plan.machines.clear();
  plan.faults.engine_outage = dice.weight(50, 4);
  plan.faults.engine_refusal = dice.weight(30, 3);
  plan.faults.pilot_preempted = dice.weight(50, 5);
  plan.faults.pilot_ended = dice.weight(40, 4);
  plan.faults.pilot_lost = dice.weight(40, 4);
}

}  // namespace

Plan draw_plan(std::uint64_t seed, const Broken& broken) {
  Dice dice{Random{seed ^ 0x5157a7e, 0}};
  Plan plan;
  plan.seed = seed;
  plan.boundary = broken.boundary;
  plan.options.mutant = broken.rule;
  plan.options.search_fault = broken.search;
  plan.options.agent_lease = seconds(60);
  plan.options.agent_kill_grace = seconds(10);
  plan.options.agent_margin = seconds(5);
  plan.options.kill_repeat = seconds(10);
  plan.options.searcher_snapshot_every = static_cast<int>(dice.between(1, 8));

  plan.faults.until = dice.between(minutes(2), minutes(8));
  plan.faults.every = dice.between(seconds(3), seconds(60));
  plan.faults.master_crash = dice.weight(70, 6);
  plan.faults.link_cut = dice.weight(60, 6);
  plan.faults.link_stall = dice.weight(40, 4);
  plan.faults.agent_restart = dice.weight(40, 4);
  plan.faults.machine_reboot = dice.weight(30, 3);
  plan.faults.machine_death = dice.weight(20, 2);
  plan.faults.harness_cut = dice.weight(60, 6);
  plan.faults.process_crash = dice.weight(30, 2);
  plan.faults.impostor = dice.weight(15, 2);
  plan.faults.slow_store = dice.weight(40, 3);
  plan.faults.queue_change = dice.weight(40, 4);
  plan.faults.service_change = dice.weight(30, 3);

  if (dice.chance(30)) plan.options.pool_rules.policy = static_cast<scheduler::Policy>(dice.between(1, 2));
  plan.options.pool_rules.preemption = dice.chance(90);
  const auto machines = dice.between(1, 4);
  const auto immortals = dice.chance(50) ? 1 : dice.between(1, machines);
  int most_on_one = 0, most_slots = 0;  // Permanent capacity.
  for (std::int64_t i = 0; i < machines; ++i) {
    const int slots = static_cast<int>(dice.between(1, 4));
    plan.machines.push_back({AgentId("agent" + std::to_string(i)), slots, i < immortals});
    if (i >= immortals) continue;
    most_on_one = std::max(most_on_one, slots);
    most_slots += slots;
  }
  draw_provider(plan, Dice{Random{seed ^ 0x9170755, 1}}, most_on_one, most_slots);
  const auto jobs = dice.between(1, 5);
  for (std::int64_t i = 0; i < jobs; ++i) {
    plan.jobs.push_back(draw_job(dice, static_cast<int>(i), most_on_one, most_slots, plan.faults.until));
  }
  const auto commands = dice.chance(60) ? dice.between(1, 4) : 0;
  for (std::int64_t i = 0; i < commands; ++i) {
    plan.commands.push_back(draw_command(dice, static_cast<int>(i), most_on_one, plan.faults.until));
  }
  plan.faults.agent_stop = dice.weight(30, 3);
  for (MachinePlan& machine : plan.machines) machine.ephemeral = dice.chance(30);
  plan.faults.quota_change = dice.weight(30, 3);
  plan.faults.agent_problem = dice.weight(30, 3);
  plan.faults.slot_fault = dice.weight(30, 3);
  draw_builds(plan, Dice{Random{seed ^ 0xb1d5, 2}});
  draw_log_policies(plan, Dice{Random{seed ^ 0x106, 3}});
  plan.finish_within = minutes(360);
  return plan;
}

namespace {

std::string secs(Duration d) { return std::to_string(d.count() / 1000000) + "s"; }

/// Describes the faults and the pilots.
std::string describe_faults(const Plan& plan) {
  std::string text;
  const Faults& f = plan.faults;
  const std::pair<const char*, int> weights[] = {{"master_crash", f.master_crash},
                                                 {"link_cut", f.link_cut},
                                                 {"link_stall", f.link_stall},
                                                 {"agent_restart", f.agent_restart},
                                                 {"machine_reboot", f.machine_reboot},
                                                 {"machine_death", f.machine_death},
                                                 {"harness_cut", f.harness_cut},
                                                 {"process_crash", f.process_crash},
                                                 {"impostor", f.impostor},
                                                 {"slow_store", f.slow_store},
                                                 {"queue_change", f.queue_change},
                                                 {"service_change", f.service_change},
                                                 {"agent_stop", f.agent_stop},
                                                 {"engine_outage", f.engine_outage},
                                                 {"engine_refusal", f.engine_refusal},
                                                 {"pilot_preempted", f.pilot_preempted},
                                                 {"pilot_ended", f.pilot_ended},
                                                 {"pilot_lost", f.pilot_lost},
                                                 {"quota_change", f.quota_change},
                                                 {"agent_problem", f.agent_problem},
                                                 {"slot_fault", f.slot_fault}};
  for (const auto& [name, weight] : weights) {
    if (weight > 0) text += "  fault " + std::string(name) + " x" + std::to_string(weight) + "\n";
  }
  for (const auto& [pool, rules] : plan.options.providers) {
    text += "  pilots: at most " + std::to_string(rules.max_pilots) + ", of at most " +
            std::to_string(rules.max_nodes) + " nodes of " + std::to_string(rules.slots_per_node) +
            " slots, released after " + secs(rules.idle_timeout) +
            (rules.per_allocation ? ", one for each allocation\n" : "\n");
  }
  return text;
}

}  // namespace

std::string describe(const Plan& plan) {
  std::string text = "seed " + std::to_string(plan.seed) + ": faults every " + secs(plan.faults.every) +
                     " until " + secs(plan.faults.until) + "\n";
  text += describe_faults(plan);
  for (const MachinePlan& machine : plan.machines) {
    text += "  machine " + machine.name.value + ": " + std::to_string(machine.slots) + " slots" +
            (machine.ephemeral ? ", ephemeral" : "") + (machine.immortal ? "\n" : ", may die\n");
  }
  for (const Job& job : plan.jobs) {
    text +=
        "  " + job.id.value + ": at " + secs(job.submit) + (job.activate ? "" : " (paused)") + ", " +
        std::to_string(job.total) + " steps, slots " + std::to_string(job.config->resources.slots_per_trial) +
        (job.config->resources.is_single_node ? " on one machine" : "") +
        (job.config->resources.max_slots ? " of " + std::to_string(*job.config->resources.max_slots) : "") +
        ", priority " + std::to_string(job.config->resources.priority) + ", max_restarts " +
        std::to_string(job.config->max_restarts) + ", validates every " + std::to_string(job.validate_every) +
        ", checkpoints every " + std::to_string(job.checkpoint_every);
    if (job.failures)
      text += ", fails " + std::to_string(job.failures) + "x at " + std::to_string(job.fail_at) +
              (job.failure == Job::Failure::kFinal        ? " (final)"
               : job.failure == Job::Failure::kRepeatable ? " (repeatable)"
                                                          : "");
    if (job.cancels_retries) text += ", its log cancels retries";
    if (job.excludes_agent) text += ", its log excludes an agent";
    if (job.ignores_preemption) text += ", ignores preemption";
    if (job.nan) text += ", NaN";
    if (job.damages) text += ", damaged checkpoints";
    if (job.hangs || job.loses_itself) text += job.hangs ? ", hangs" : ", loses itself";
    if (job.invalid_hp) text += job.always_invalid ? ", always invalid hp" : ", invalid hp";
    if (job.searches())
      text += ", " + job.config->searcher.name + " of " + std::to_string(job.config->searcher.max_trials);
    if (job.detached) text += ", outside the cluster";
    for (const Job::Action& action : job.actions) {
      static constexpr const char* kNames[] = {"activate", "pause", "cancel", "kill"};
      text += ", ";
      if (action.on == Job::Action::On::kExtend)
        text += "extend";
      else if (action.on == Job::Action::On::kRetry)
        text += "retry";
      else
        text += std::string(kNames[static_cast<int>(action.action)]) +
                (action.on == Job::Action::On::kTrial ? " trial" : "");
      text += "@" + secs(action.at);
    }
    text += "\n";
  }
  for (const CommandPlan& command : plan.commands) {
    text += "  " + command.task.value + ": at " + secs(command.submit) + ", slots " +
            std::to_string(command.config->slots) + ", priority " + std::to_string(command.config->priority) +
            ", runs " + secs(command.program.chunk_time) +
            (command.program.hangs      ? ", hangs"
             : command.program.failures ? ", fails"
                                        : "") +
            (command.pause_after ? ", paused after " + secs(*command.pause_after) : "") +
            (command.kill_after ? ", killed after " + secs(*command.kill_after) : "") + "\n";
  }
  return text;
}

double metric_of(const Job& job, std::uint32_t trial_seed, std::int64_t steps) {
  if (job.nan && steps / job.validate_every % 2 == 0) return std::numeric_limits<double>::quiet_NaN();
  return Random{trial_seed, static_cast<std::uint64_t>(steps)}.uniform();
}

}  // namespace det::sim
