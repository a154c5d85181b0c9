// The Core API except checkpoints: creation, reports, preemption and the profiler's switch.
#include "det/core.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/metrics/limits.h"
#include "common/storage/location.h"
#include "common/yaml/yaml.h"
#include "harness/src/base/collective_log.h"
#include "harness/src/base/crash_report.h"
#include "harness/src/base/heartbeat.h"
#include "harness/src/base/or_throw.h"
#include "harness/src/base/storage_full.h"
#include "harness/src/base/termination.h"
#include "harness/src/checkpoint/checkpoint_start.h"
#include "harness/src/client/trial_info.h"
#include "harness/src/core_api/core_state.h"

namespace det {
namespace {

/// Limit for flushing reports at exit. Long, because the master may be down; the agent's supervisor ends the
/// process when its result is no longer needed.
constexpr std::chrono::hours kPatience{24 * 7};
constexpr const char* kNoBatches = "the program trains with the Core API, which has no batches to record";

CoreInfo to_info(const TrialInfo& info) {
  CoreInfo out;
  out.on_cluster = info.on_cluster;
  out.experiment_id = info.experiment_id;
  out.trial_id = info.trial_id;
  out.run = info.run;
  out.trial_seed = info.seed;
  out.hparams = info.hparams;
  out.experiment_config = info.experiment_config;
  out.latest_checkpoint = info.latest_checkpoint;
  out.checkpoint_storage = info.checkpoint_dir;
  out.master = info.master;
  out.cluster_id = info.cluster_id;
  out.agent_id = info.agent_id;
  out.task_id = info.task_id;
  out.allocation_id = info.allocation_id;
  out.slot_ids = info.slot_ids;
  return out;
}

[[noreturn]] void refuse(const std::string& message) { throw std::invalid_argument(message); }

void check_group(const std::string& group) {
  const auto& reserved = SystemMetrics::groups();
  if (!is_metric_group(group)) {
    refuse("metric group \"" + make_utf8(group) + "\": must have 1 to 128 characters, without \".\"");
  }
  if (std::find(reserved.begin(), reserved.end(), group) != reserved.end()) {
    refuse("metric group \"" + group + "\" is the system profiler's; choose another name");
  }
}

/// Validates metrics and returns them as they are sent.
std::string check_metrics(const std::string& group, std::int64_t steps_completed, const Json& metrics) {
  const std::string where = group + " metrics at step " + std::to_string(steps_completed);
  if (steps_completed < 0) refuse(where + ": steps_completed must not be negative");
  if (!metrics.is_object()) refuse(where + ": expected an object name → number, got " + dump_json(metrics));
  if (metrics.size() > kMaxMetrics) refuse(where + ": more than 1000 metrics");
  for (const auto& [name, value] : metrics.items()) {
    if (!is_metric_name(name)) {
      refuse(where + ": the name \"" + make_utf8(name) + "\" must be 1 to 256 characters of printable ASCII");
    }
    if (value.is_null() && group == "validation") {
      refuse(where + ": \"" + name + "\" is null; report a number, or leave it out");
    }
    if (value.is_binary() || value.is_discarded()) refuse(where + ": \"" + name + "\" is no JSON value");
  }
  std::string text = dump_json(metrics);
  if (const auto readable = parse_json(text, {.bytes = kMaxMetricBytes, .depth = kMaxMetricDepth});
      !readable) {
    refuse(where + ": " + readable.error().message);
  }
  return text;
}

}  // namespace

// ---- reports ----

void TrainContext::report_training_metrics(std::int64_t steps_completed, const Json& metrics) {
  report_metrics("training", steps_completed, metrics);
}
void TrainContext::report_validation_metrics(std::int64_t steps_completed, const Json& metrics) {
  report_metrics("validation", steps_completed, metrics);
}

void TrainContext::report_metrics(const std::string& group, std::int64_t steps_completed,
                                  const Json& metrics) {
  check_group(group);
  beat();
  std::string text = check_metrics(group, steps_completed, metrics);
  CoreState::Reported& newest = state_.newest[group];
  // An exact repetition is ignored; other metrics for the same step are an error.
  if (newest.steps == steps_completed) {
    if (newest.metrics == text) return;
    refuse(group + " metrics at step " + std::to_string(steps_completed) +
           " were reported already; report all metrics of a group and step in one call");
  }
  newest = {steps_completed, std::move(text)};
  state_.steps_completed = std::max(state_.steps_completed, steps_completed);
  state_.client->report_metrics(group, steps_completed, metrics);
}

void TrainContext::report_progress(double progress, std::int64_t steps_completed) {
  if (!(progress >= 0 && progress <= 1))
    refuse("progress must be within 0 and 1, got " + std::to_string(progress));
  beat();
  state_.client->report_progress(progress, steps_completed < 0 ? state_.steps_completed : steps_completed);
}

void TrainContext::report_early_exit(ExitedReason reason) {
  switch (reason) {
    case ExitedReason::kInvalidHP:
      return state_.client->report_invalid_hp();
  }
}

// ---- preemption ----

bool PreemptContext::should_preempt(bool auto_ack) {
  DistributedContext& distributed = *state_.distributed;
  if (state_.preempt_mode == PreemptMode::kChiefOnly && !distributed.is_chief()) {
    throw std::logic_error("should_preempt: with PreemptMode::kChiefOnly only the chief may call it");
  }
  beat();
  bool preempt = state_.client->should_preempt();
  if (distributed.size() > 1 && state_.preempt_mode == PreemptMode::kWorkersAskChief) {
    preempt = distributed.broadcast(preempt).get<bool>();
  }
  state_.preempted = state_.preempted || preempt;
  if (preempt) begin_termination();  // also on ranks other than the chief
  if (preempt && auto_ack && !state_.acknowledged) acknowledge_preemption_signal();
  return preempt;
}

void PreemptContext::acknowledge_preemption_signal() {
  if (!state_.preempted)
    throw std::logic_error("acknowledge_preemption_signal: should_preempt() has not said true");
  if (std::exchange(state_.acknowledged, true)) return;
  state_.client->acknowledge_preemption();
}

// ---- the profiler ----

void ProfilerContext::on(double sampling_interval, int samples_per_report) {
  if (!(sampling_interval > 0 && sampling_interval <= 86400) || samples_per_report < 1) {
    refuse(
        "profiler: the interval must be within 0 and 86400 seconds, and a report have at least one sample");
  }
  if (state_.profiler_on || !state_.distributed->is_chief()) return;
  state_.profiler_on = true;
  state_.system_metrics.reset();
  state_.system_metrics = std::make_unique<SystemMetrics>(
      *state_.client,
      SystemMetrics::Options{.interval = Duration(static_cast<std::int64_t>(sampling_interval * 1e6)),
                             .samples_per_report = samples_per_report});
}

void ProfilerContext::off() {
  state_.profiler_on = false;
  state_.system_metrics.reset();
}

// ---- creation and end ----

CoreContext::CoreContext(std::unique_ptr<CoreState> state)
    : state_(std::move(state)),
      train_(*state_),
      checkpoint_(*state_),
      preempt_(*state_),
      profiler_(*state_),
      exceptions_(std::uncaught_exceptions()) {}
CoreContext::CoreContext(CoreContext&&) noexcept = default;

namespace {

/// The state of the context in use, for handlers of exits and exceptions; null without one.
std::atomic<CoreState*> active_core{nullptr};
/// The process that created it; a forked child must not act for it.
pid_t core_process = 0;

/// Stores all reports and ends a detached trial.
void end_program(CoreState& state) {
  state.system_metrics.reset();
  (void)state.client->flush(kPatience);
  if (!state.info.detached) return;
  state.client->report_end(state.failure.has_value(), state.failure.value_or(""));
  (void)state.client->flush(kPatience);
}

/// Prints the exception that is being handled. Returns its message and the exit code.
std::pair<std::string, ExitCode> print_exception() {
  std::string message = "an exception that is no std::exception";
  ExitCode code = kExitFailed;
  ThrowSite site;
  try {
    throw;
  } catch (const std::exception& error) {
    message = error.what();
    site = throw_site(dynamic_cast<const void*>(&error));
    if (dynamic_cast<const StorageFull*>(&error) != nullptr) code = kExitStorageFull;
  } catch (...) {
  }
  if (!site.place.empty()) message += " (" + site.place + ")";
  std::fflush(stdout);
  std::fprintf(stderr, "%serror: %s\n", site.stack.c_str(), message.c_str());
  return {message, code};
}

/// An exception has left main() or a thread. The stack is not unwound, so no destructor stores the reports.
void on_core_terminate() {
  if (std::current_exception() == nullptr) std::abort();
  const auto [message, code] = print_exception();
  if (CoreState* const state = active_core.exchange(nullptr); state != nullptr) {
    if (!state->failure) state->failure = message;
    end_program(*state);
  }
  std::_Exit(code);
}

/// exit() within the lifetime of the context. _Exit skips destructors of static objects, which would run
/// beside the context's threads.
void on_core_exit(int status, void*) {
  CoreState* const state = ::getpid() == core_process ? active_core.exchange(nullptr) : nullptr;
  if (state == nullptr) return;
  if (status != 0 && !state->failure)
    state->failure = "the program called exit(" + std::to_string(status) + ")";
  end_program(*state);
  std::fflush(nullptr);
  std::_Exit(status);
}

void handle_exits() {
  install_crash_report();
  if (CollectiveLog* const log = CollectiveLog::of_process()) log->handle_stack_requests();
  ignore_foreign_sigterm();
  std::set_terminate(on_core_terminate);
  core_process = ::getpid();
  (void)::on_exit(on_core_exit, nullptr);
}

}  // namespace

CoreContext::~CoreContext() {
  // A moved-from context has no state.
  if (!state_) return;
  CoreState* mine = state_.get();
  active_core.compare_exchange_strong(mine, nullptr);
  // Stack unwinding means that the program failed.
  if (!state_->failure && std::uncaught_exceptions() > exceptions_)
    state_->failure = "an exception ended the program";
  end_program(*state_);
}

void CoreContext::fail(const std::string& message) { state_->failure = message; }

DistributedContext& CoreContext::distributed() { return *state_->distributed; }
const CoreInfo& CoreContext::info() const { return state_->info; }
bool CoreContext::flush(std::chrono::seconds timeout) { return state_->client->flush(timeout); }

namespace {

/// Starts the reports about the machine, which need no request on a cluster and in detached mode.
void observe(CoreState& state) {
  if (state.distributed->is_chief())
    state.system_metrics = std::make_unique<SystemMetrics>(*state.client, SystemMetrics::Options());
}

/// Returns the experiment configuration as YAML.
std::string detached_config(const DetachedConfig& config) {
  if (!config.hparams.is_object()) refuse("DetachedConfig: hparams must be an object");
  Json experiment{{"entrypoint", "detached"},
                  {"hyperparameters", config.hparams},
                  {"data", config.data},
                  {"labels", config.labels},
                  {"searcher",
                   {{"name", "single"},
                    {"metric", config.searcher_metric},
                    {"smaller_is_better", config.smaller_is_better}}},
                  {"resources", {{"slots_per_trial", 0}}},
                  {"max_restarts", 0}};
  if (!config.name.empty()) experiment["name"] = config.name;
  if (!config.description.empty()) experiment["description"] = config.description;
  if (!config.checkpoint_storage.empty()) {
    experiment["checkpoint_storage"] = {
        {"type", "directory"},
        {"container_path", std::filesystem::absolute(config.checkpoint_storage).string()}};
  }
  return to_yaml(experiment);
}

/// The chief creates the experiment and broadcasts its identity; a failure is broadcast, too, so all ranks
/// throw.
std::unique_ptr<Client> begin_detached(const DetachedConfig& config, DistributedContext& distributed,
                                       TrialInfo& info) {
  std::unique_ptr<Client> client;
  Json told = Json::object();
  if (distributed.is_chief()) {
    auto made = make_detached_client(config.master, config.user, detached_config(config), info);
    if (made) {
      client = std::move(*made);
      told = {{"experiment", info.experiment_id},
              {"trial", info.trial_id},
              {"seed", info.seed},
              {"config", info.experiment_config},
              {"checkpoints", info.checkpoint_dir},
              {"master", info.master}};
    } else {
      told = {{"error", made.error().message}};
    }
  }
  told = distributed.broadcast(told);
  if (told.contains("error")) throw std::runtime_error("detached mode: " + told["error"].get<std::string>());
  info.experiment_id = told["experiment"].get<std::int64_t>();
  info.trial_id = told["trial"].get<std::int64_t>();
  info.run = 1;
  info.seed = told["seed"].get<std::int64_t>();
  info.experiment_config = told["config"];
  if (!distributed.is_chief()) {
    if (const Json* storage = find_path(info.experiment_config, "checkpoint_storage");
        !storage::is_bucket(*storage))
      info.checkpoint_dir = told["checkpoints"].get<std::string>();
    if (const Status open = open_storage(info); !open)
      throw std::runtime_error("detached mode: " + open.error().message);
  }
  info.master = told["master"].get<std::string>();
  info.hparams = config.hparams;
  return client != nullptr ? std::move(client) : make_quiet_client(/*takes_signals=*/false);
}

}  // namespace

CoreContext init_core(CoreOptions options) {
  handle_exits();
  auto state = std::make_unique<CoreState>();
  state->preempt_mode = options.preempt_mode;
  state->distributed = std::move(options.distributed);
  if (!state->distributed)
    state->distributed = std::make_shared<DistributedContext>(rank_info_from_environment());
  if (options.detached && !on_cluster()) {
    TrialInfo info;
    state->client = begin_detached(*options.detached, *state->distributed, info);
    state->client->refuse_profiles(kNoBatches);
    state->info = to_info(info);
    state->bucket = info.bucket;
    state->info.detached = true;
    observe(*state);
    active_core = state.get();
    return CoreContext(std::move(state));
  }
  TrialInfo info = value_or_throw(
      on_cluster() ? cluster_trial_info() : local_trial_info(options.config_file, options.checkpoint_dir));
  beat();  // starts the hang watch: the code below may block
  state->client = state->distributed->is_chief() ? value_or_throw(make_client(info))
                                                 : make_quiet_client(/*takes_signals=*/!info.on_cluster);
  state->client->refuse_profiles(kNoBatches);
  if (info.on_cluster) info.latest_checkpoint = agree_on_start(*state->distributed, info, fall_back_at(info));
  state->info = to_info(info);
  state->bucket = info.bucket;
  if (info.on_cluster) observe(*state);
  active_core = state.get();
  return CoreContext(std::move(state));
}

}  // namespace det
