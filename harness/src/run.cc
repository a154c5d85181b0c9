// Owns the top of a training program: set-up, and how an ending becomes an exit code.
#include <ATen/Parallel.h>
#include <malloc.h>
#include <torch/cuda.h>
#include <torch/utils.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "checkpoint_dir.h"
#include "context_state.h"
#include "det/trainer.h"
#include "trial_info.h"

namespace det {
namespace {

/// A dead master is waited for: the supervisor ends us when nobody wants us any more.
constexpr std::chrono::hours kPatience{24 * 7};

/// Training frees and takes the same large blocks every step: giving them back to the system costs a page fault a page.
void keep_freed_memory() {
  if (::mallopt(M_MMAP_THRESHOLD, 1 << 30) == 0) (void)::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  (void)::mallopt(M_TRIM_THRESHOLD, 0x7fffffff);
  (void)::mallopt(M_TOP_PAD, 64 << 20);
}

void set_threads() {
  const char* wanted = std::getenv("OMP_NUM_THREADS");
  const int threads = wanted != nullptr ? std::atoi(wanted) : static_cast<int>(std::thread::hardware_concurrency());
  at::set_num_threads(std::max(threads, 1));
}

/// Processes of this trial, as launchers say it.
int world_size() {
  const char* size = std::getenv("WORLD_SIZE");
  return size != nullptr ? std::atoi(size) : 1;
}

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

std::unique_ptr<ContextState> make_state(const RunOptions& options) {
  auto state = std::make_unique<ContextState>();
  state->info = value_or_throw(on_cluster() ? cluster_trial_info()
                                            : local_trial_info(options.config_file, options.checkpoint_dir));
  TrialInfo& info = state->info;
  if (!options.model_dir.empty()) info.model_dir = options.model_dir;
  if (!info.model_dir.empty()) state->code = list_files(info.model_dir, info.checkpoint_dir);
  if (world_size() > 1) {
    throw std::runtime_error("this release trains in one process; start one (WORLD_SIZE is " +
                             std::to_string(world_size()) + ")");
  }
  const Json* data = find_path(info.experiment_config, "data");
  if (data != nullptr && data->is_object()) state->data_config = *data;
  if (torch::cuda::is_available()) state->device = torch::Device(torch::kCUDA, 0);
  torch::manual_seed(static_cast<std::uint64_t>(info.seed));
  state->client = value_or_throw(make_client(info));
  std::printf("training on %s, %d threads, seed %lld\n", state->device.str().c_str(), at::get_num_threads(),
              static_cast<long long>(info.seed));
  return state;
}

/// One line for the end of the log.
std::string message_of(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);  // its what() has a backtrace of a hundred lines
  std::string message = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  while (!message.empty() && message.back() == '\n') message.pop_back();
  for (std::size_t at = 0; (at = message.find('\n', at)) != std::string::npos; at += 3) message.replace(at, 1, " | ");
  return message;
}

int fail_with(const ContextState* state, const std::string& message) {
  std::string where = state == nullptr ? "start" : state->doing;
  if (state != nullptr && state->doing_batch >= 0) where += " (batch " + std::to_string(state->doing_batch) + ")";
  if (state != nullptr) state->client->flush(kPatience);
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s: %s\n", where.c_str(), message.c_str());
  return kExitFailed;
}

}  // namespace

int run(const std::function<void(TrialContext&)>& body, const RunOptions& options) {
  keep_freed_memory();
  set_threads();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a log is read while it is written
  std::optional<TrialContext> context;
  ContextState* state = nullptr;
  try {
    context.emplace(make_state(options));
    state = &context->state();
    body(*context);
    state->client->flush(kPatience);
    return kExitOk;
  } catch (const InvalidHP& error) {
    state->client->report_invalid_hp();
    state->client->flush(kPatience);
    std::fprintf(stderr, "invalid hyperparameters: %s\n", error.what());
    return kExitOk;
  } catch (const std::exception& error) {
    return fail_with(state, message_of(error));
  } catch (...) {
    return fail_with(state, "an exception that is no std::exception");
  }
}

}  // namespace det
