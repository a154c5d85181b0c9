// Entry points of a training program: process set-up, creation of the context, and
// mapping of exceptions to exit codes.
#include <ATen/Parallel.h>
#include <malloc.h>
#include <torch/cuda.h>
#include <torch/utils.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/base/json.h"
#include "common/base/process.h"
#include "det/trainer.h"
#include "harness/src/base/collective_log.h"
#include "harness/src/base/crash_report.h"
#include "harness/src/base/heartbeat.h"
#include "harness/src/base/or_throw.h"
#include "harness/src/base/storage_full.h"
#include "harness/src/base/termination.h"
#include "harness/src/checkpoint/checkpoint_dir.h"
#include "harness/src/checkpoint/checkpoint_start.h"
#include "harness/src/client/setting.h"
#include "harness/src/client/trial_info.h"
#include "harness/src/distributed/side_queue.h"
#include "harness/src/trainer/context_state.h"

namespace det {
namespace {

/// Limit for flushing reports at exit. Long, because the master may be down; the agent's supervisor kills the
/// process when its result is no longer needed.
constexpr std::chrono::hours kPatience{24 * 7};

/// Keeps freed memory in the process. Training allocates the same large blocks every step; returning them to
/// the system would cost one page fault per page.
void keep_freed_memory() {
  // 1 GiB may exceed the C library's limit (32 MiB in glibc on 64-bit systems).
  if (::mallopt(M_MMAP_THRESHOLD, 1 << 30) == 0) (void)::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  (void)::mallopt(M_TRIM_THRESHOLD, 0x7fffffff);
  (void)::mallopt(M_TOP_PAD, 64 << 20);
}

/// The directory for event files, beside the checkpoints. On a cluster it is per experiment and trial,
/// because TensorBoard shows each directory as a run.
std::string tensorboard_directory(const TrialInfo& info) {
  if (!info.on_cluster) return info.checkpoint_dir + "/tensorboard";
  return info.checkpoint_dir + "/tensorboard/experiment_" + std::to_string(info.experiment_id) + "/trial_" +
         std::to_string(info.trial_id);
}

/// Applies `optimizations.zero`. Throws std::invalid_argument for settings that exclude it.
void configure_zero(ContextState& state) {
  const auto stage = setting<std::int64_t>(state.run.info.experiment_config, "optimizations.zero");
  if (stage != 0 && stage != 1)
    throw std::invalid_argument("optimizations.zero: expected 0 or 1, got " + std::to_string(stage));
  if (stage == 0) return;
  if (state.gradients.exact) {
    throw std::invalid_argument(
        "optimizations.zero: 1 does not go with reproducibility: exact, whose steps are the same on any "
        "number "
        "of processes; set one of them");
  }
  if (state.run.info.bucket != nullptr && state.run.distributed->cross_size() > 1) {
    throw std::invalid_argument(
        "optimizations.zero: 1 over several machines needs a checkpoint_storage that all of them mount "
        "(shared_fs), not a bucket");
  }
  state.gradients.zero = true;
}

/// Applies the settings that determine how gradients become steps: aggregation, virtual shards, precision.
void configure(ContextState& state, const InitOptions& options) {
  const Json& config = state.run.info.experiment_config;
  Aggregation& aggregation = state.gradients.aggregation;
  aggregation.frequency = options.aggregation_frequency
                              ? *options.aggregation_frequency
                              : setting<std::int64_t>(config, "optimizations.aggregation_frequency");
  aggregation.average = setting<bool>(config, "optimizations.average_aggregated_gradients");
  if (aggregation.frequency < 1) throw std::invalid_argument("aggregation_frequency must be at least 1");
  // `reproducibility: exact` is the short form of {mode: exact}.
  const Json* kind = find_setting(config, "reproducibility");
  if (kind != nullptr && kind->is_string()
          ? *kind == "exact"
          : setting<std::string>(config, "reproducibility.mode") == "exact") {
    state.gradients.exact = ShardPlan::make(setting<std::int64_t>(config, "reproducibility.virtual_shards"),
                                            state.run.distributed->rank(), state.run.distributed->size());
  }
  configure_zero(state);
  state.gradients.cuda_graph = setting<bool>(config, "optimizations.cuda_graph");
  const auto precision = setting<std::string>(config, "optimizations.precision");
  if (precision == "fp32") return;
  if (precision != "bf16" && precision != "fp16") {
    throw std::invalid_argument("optimizations.precision: expected fp32, bf16 or fp16, got " + precision);
  }
  state.gradients.amp = AmpOptions{.dtype = precision == "bf16" ? torch::kBFloat16 : torch::kHalf};
  (void)Autocast(state.run.device, state.gradients.amp->dtype);  // throws when the device lacks the type
  if (precision == "fp16") state.wrapped.scaler = std::make_unique<GradScaler>();
}

/// Sets the number of LibTorch threads. Some operators round differently for different numbers of threads, so
/// exact mode uses one thread unless the user set OMP_NUM_THREADS. Our own programs set it too, to what they
/// also put into DET_DEFAULT_THREADS.
void set_threads(bool exact) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string wanted = variable("OMP_NUM_THREADS");
  int threads = wanted.empty() ? cpu_count() : std::atoi(wanted.c_str());
  if (exact && wanted == variable("DET_DEFAULT_THREADS")) threads = 1;
  at::set_num_threads(std::max(threads, 1));
}

/// The device of this process: the GPU of its local rank if there are GPUs, else the CPU. Throws
/// std::invalid_argument when there are fewer GPUs than processes.
torch::Device device_of(int local_rank) {
  if (!torch::cuda::is_available()) return torch::kCPU;
  const auto count = static_cast<int>(torch::cuda::device_count());
  if (local_rank >= count) {
    throw std::invalid_argument(
        "local rank " + std::to_string(local_rank) + " has no GPU: " + std::to_string(count) +
        " visible; start one process per GPU, or set CUDA_VISIBLE_DEVICES= to train on "
        "the CPU");
  }
  return {torch::kCUDA, static_cast<c10::DeviceIndex>(local_rank)};
}

/// Returns a note for a trial that trains on the CPU although it has, or could have, a GPU; else "".
const char* why_no_gpu() {
  if (built_with_cuda()) return " (this build has CUDA, but finds no usable device; check nvidia-smi)";
  const char* gpus = std::getenv("CUDA_VISIBLE_DEVICES");
  if (gpus == nullptr || *gpus == '\0') return "";
  return " (its slots are GPUs, but this build has LibTorch without CUDA; run deploy/deps.sh --cuda and "
         "build again)";
}

/// Creates the state of a context. Collective: with several processes every rank connects to the others here.
std::unique_ptr<ContextState> make_state(const InitOptions& options) {
  auto state = std::make_unique<ContextState>();
  state->run.info = value_or_throw(
      on_cluster()       ? cluster_trial_info()
      : options.exp_conf ? local_trial_info(*options.exp_conf, "exp_conf: ", options.checkpoint_dir)
                         : local_trial_info(options.config_file, options.checkpoint_dir));
  TrialInfo& info = state->run.info;
  beat();  // starts the hang watch: the code below may block
  if (!options.model_dir.empty()) info.model_dir = options.model_dir;
  if (!info.model_dir.empty()) state->run.code = list_files(info.model_dir, info.checkpoint_dir);
  if (options.hparams) info.hparams = *options.hparams;
  const RankInfo ranks = rank_info_from_environment();
  if (ranks.size > 1) state->run.distributed = std::make_unique<DistributedContext>(ranks);
  state->run.device = device_of(ranks.local_rank);
  state->run.communicator = make_communicator(*state->run.distributed, state->run.device);
  configure(*state, options);
  set_threads(state->gradients.exact.has_value());
  torch::manual_seed(static_cast<std::uint64_t>(info.seed));
  state->instruments.tensorboard_dir = tensorboard_directory(info);
  state->instruments.tensorboard_logging = options.enable_tensorboard_logging;
  state->run.client =
      ranks.rank > 0 ? make_quiet_client(!info.on_cluster) : value_or_throw(make_client(info));
  if (info.on_cluster)
    info.latest_checkpoint = agree_on_start(*state->run.distributed, info, fall_back_at(info));
  // The chief prints the banner.
  if (ranks.rank > 0) return state;
  std::printf("training on %s, %d threads, seed %lld", state->run.device.str().c_str(), at::get_num_threads(),
              static_cast<long long>(info.seed));
  if (!state->run.device.is_cuda()) std::printf("%s", why_no_gpu());
  if (ranks.size > 1) std::printf(", %d processes over %s", ranks.size, state->run.communicator->name());
  if (state->gradients.exact)
    std::printf(", exact over %lld shards", static_cast<long long>(state->gradients.exact->shards));
  std::printf("\n");
  return state;
}

/// The message of an exception and those nested in it, as one line: outermost first, joined by ": ", without
/// those that an outer one ends with.
std::string message_of(const std::exception& error) {
  // c10::Error::what() includes a backtrace of about a hundred lines.
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  std::string message = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  if (dynamic_cast<const nlohmann::json::exception*>(&error) != nullptr) {
    // "[json.exception.out_of_range.403] key 'dir' not found": the number means nothing to the author.
    const std::size_t end = message.find("] ");
    message =
        "a value of the configuration, or other JSON: " + message.substr(end == message.npos ? 0 : end + 2);
  }
  while (!message.empty() && message.back() == '\n') message.pop_back();
  for (std::size_t at = 0; (at = message.find('\n', at)) != std::string::npos; at += 3)
    message.replace(at, 1, " | ");
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& inner) {
    if (const std::string text = message_of(inner); !message.ends_with(text)) message += ": " + text;
  } catch (...) {
  }
  return message;
}

/// The place of the innermost exception in a nest that was thrown by a line of the trial.
ThrowSite site_of(const std::exception& error) {
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& inner) {
    if (ThrowSite site = site_of(inner); !site.place.empty()) return site;
  } catch (...) {
  }
  return throw_site(dynamic_cast<const void*>(&error));
}

/// What the error means for a restart of the trial.
ExitCode exit_code_for(const ContextState* state, const std::exception& error, const std::string& message) {
  if (dynamic_cast<const StorageFull*>(&error) != nullptr) return kExitStorageFull;
  if (state == nullptr || state->activity.batch < 0) {
    // Before and between batches a logic error is one of the trial's code or configuration.
    const bool refused = dynamic_cast<const std::logic_error*>(&error) != nullptr ||
                         dynamic_cast<const nlohmann::json::exception*>(&error) != nullptr;
    return refused ? kExitFinal : kExitFailed;
  }
  // Errors of the machine may be absent in the next run.
  const bool machine = dynamic_cast<const std::system_error*>(&error) != nullptr ||
                       dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                       message.find("CUDA error") != std::string::npos ||
                       message.ends_with(") is gone");  // another rank, see distributed_star.cc
  return state->activity.kind != Activity::Kind::kOther && !machine ? kExitRepeatable : kExitFailed;
}

/// Prints the failure and what the trial was doing, flushes reports, and returns the exit code.
int fail_with(const ContextState* state, ExitCode code, const std::string& message,
              const ThrowSite& site = {}) {
  const std::string where = state == nullptr ? "start" : to_string(state->activity);
  const std::string records = state == nullptr ? "" : crash_records_text(state->activity);
  if (state != nullptr && state->run.client != nullptr) state->run.client->flush(kPatience);
  std::fflush(stdout);
  std::fprintf(stderr, "%s%serror: %s: %s%s\n", site.stack.c_str(), records.c_str(), where.c_str(),
               message.c_str(), site.place.empty() ? "" : (" (" + site.place + ")").c_str());
  return code;
}

/// InvalidHP is a regular outcome of a search: the trial ends with exit code 0.
int end_invalid(ContextState& state, const InvalidHP& error) {
  state.run.client->report_invalid_hp();
  state.run.client->flush(kPatience);
  std::fflush(stdout);
  std::fprintf(stderr, "invalid hyperparameters: %s\n", error.what());
  return kExitOk;
}

/// The exit code for the exception being handled. `state` is null when the context was not created.
int exit_code_of_exception(ContextState* state) {
  try {
    throw;
  } catch (const InvalidHP& error) {
    if (state != nullptr) return end_invalid(*state, error);
    return fail_with(state, kExitFinal, error.what());
  } catch (const std::exception& error) {
    const std::string message = message_of(error);
    return fail_with(state, exit_code_for(state, error, message), message, site_of(error));
  } catch (...) {
    return fail_with(state, kExitFailed, "an exception that is no std::exception");
  }
}

/// det::run() calls the body: an exit() there ends the training.
std::atomic<bool> in_body{false};
/// The process that created the context; a forked child must not act for it.
pid_t context_process = 0;

/// Called first of all handlers of exit(). _Exit skips the others and the destructors of static objects,
/// which would run beside the threads of training.
void on_exit_call(int status, void*) {
  ContextState* const state = ContextState::active;
  if (state == nullptr || ::getpid() != context_process) return;
  if (in_body) {
    // Code 0 would mean that training is complete.
    const ExitCode code = status == 0 ? kExitFailed : static_cast<ExitCode>(status);
    std::_Exit(fail_with(state, code, "the trial called exit(" + std::to_string(status) + ")"));
  }
  state->run.client->flush(kPatience);
  std::fflush(nullptr);
  std::_Exit(status);
}

/// An exception has left a thread or main().
void on_terminate() {
  if (std::current_exception() == nullptr) std::abort();
  std::_Exit(exit_code_of_exception(ContextState::active));
}

void set_up_process() {
  keep_freed_memory();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // logs are followed live
  install_crash_report();
  if (CollectiveLog* const log = CollectiveLog::of_process()) log->handle_stack_requests();
  ignore_foreign_sigterm();
  std::set_terminate(on_terminate);
}

/// Makes the context's state the one of crash reports and exits.
ContextState& activate(ContextState& state) {
  context_process = ::getpid();
  ContextState::active = &state;
  set_crash_activity(&state.activity);
  // Registered late, so that it is called before the destructors of the libraries loaded so far.
  (void)::on_exit(on_exit_call, nullptr);
  return state;
}

}  // namespace

int run(const std::function<void(TrialContext&)>& body, const InitOptions& options) {
  set_up_process();
  std::optional<TrialContext> context;
  ContextState* state = nullptr;
  try {
    context.emplace(make_state(options));
    state = &activate(context->state());
    in_body = true;
    body(*context);
    in_body = false;
    state->run.client->flush(kPatience);
    return kExitOk;
  } catch (...) {
    in_body = false;
    return exit_code_of_exception(state);
  }
}

TrialContext init(const InitOptions& options) {
  // After init() the program's own main() runs, so exceptions are caught by the terminate handler. _Exit
  // skips destructors and atexit handlers, which could throw or block again.
  set_up_process();
  auto state = make_state(options);
  (void)activate(*state);
  return TrialContext(std::move(state));
}

}  // namespace det
