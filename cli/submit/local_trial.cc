#include "cli/submit/local_trial.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "cli/output/print.h"
#include "common/archive/archive.h"
#include "common/base/openmp.h"
#include "common/base/units.h"
#include "common/build/cache.h"
#include "common/build/precompiled.h"
#include "common/metrics/throughput.h"

namespace det::cli {
namespace {

using namespace std::chrono_literals;

/// Messages of the compiler that wait to be printed; a full queue blocks the thread of the build.
constexpr std::size_t kMaxMessages = 1000;
constexpr Duration kHeaderTimeout = 15min;

/// Prefix of the installation that this program belongs to: it holds bin/ and share/det/.
std::string prefix() { return std::filesystem::path(program_path()).parent_path().parent_path().string(); }
std::string recipe_path() { return prefix() + "/share/det/model_build.json"; }

}  // namespace

Result<build::TrialName> local_trial_name(const expconf::ExperimentConfig& config,
                                          const std::string& command) {
  const auto trial =
      config.entrypoint.size() == 1 ? build::parse_trial_name(config.entrypoint[0]) : std::nullopt;
  if (trial) return *trial;
  if (const std::string step = config.compiled_step(); !step.empty())
    return fail(Code::kInvalidArgument,
                command + " compiles and runs a trial class; a compiled step runs without it: " +
                    "det-harness --config const.yaml " + step);
  return fail(Code::kInvalidArgument,
              command + " runs a trial class (entrypoint: model_def:MyTrial); run a command line yourself");
}

Result<TemporaryDirectory> unpack_trial(const std::string& config_text, const std::string& archive) {
  TRY_ASSIGN(TemporaryDirectory place, TemporaryDirectory::create("det-local"));
  TRY(unpack(archive, place.path() + "/model"));
  TRY(write_file_atomic(place.path() + "/config.yaml", config_text));
  return place;
}

Result<std::unique_ptr<LocalBuild>> LocalBuild::start(const build::TrialName& trial,
                                                      const std::string& place) {
  auto recipe = build::read_recipe(recipe_path());
  if (!recipe) {
    return fail(
        Code::kFailedPrecondition,
        recipe.error().message +
            ": the training library is not installed beside det; without --local the cluster tests it");
  }
  const std::string models = build::models_directory(place + "/models");
  TRY(make_directories(models));
  return std::unique_ptr<LocalBuild>(new LocalBuild(
      {.recipe = std::move(*recipe), .trial = trial, .source_dir = place + "/model", .models_dir = models}));
}

LocalBuild::LocalBuild(build::BuildRequest request)
    : request_(std::move(request)),
      source_(request_.trial.module + ".cpp"),
      begin_(mono_now()),
      messages_(kMaxMessages) {
  request_.on_line = [this](const std::string& line) { messages_.push(std::string(line)); };
  outcome_ =
      std::async(std::launch::async, [this] { return build::build_model(request_, stop_.get_token()); });
}

LocalBuild::~LocalBuild() {
  stop_.request_stop();
  // A build that waits for space in the queue would never end.
  messages_.close();
  if (outcome_.valid()) outcome_.wait();
}

void LocalBuild::print_messages() {
  for (const std::string& line : messages_.pop_batch(kMaxMessages, 0ms)) {
    status_.hide();
    std::cerr << printable(line) << '\n';
  }
}

bool LocalBuild::poll(Duration patience) {
  const bool ended = outcome_.wait_for(patience) == std::future_status::ready;
  print_messages();
  if (ended)
    status_.hide();
  else
    status_.show("building " + source_ + ": " + whole_seconds(mono_now() - begin_), mono_now());
  return ended;
}

Result<std::string> LocalBuild::take() {
  TRY_ASSIGN(const build::BuildOutcome outcome, outcome_.get());
  without_header_ = outcome.without_header;
  // On a machine without an agent, no other program bounds the cache.
  if (!outcome.cached) build::trim_cache({request_.models_dir}, build::kDefaultCacheBytes);
  print_messages();
  if (outcome.library.empty())
    std::cout << source_ << " does not compile" << std::endl;
  else if (outcome.cached)
    std::cout << source_ << " was built before" << std::endl;
  else
    std::cout << source_ << " built in " << human_duration(mono_now() - begin_) << std::endl;
  return outcome.library;
}

void precompile(const std::stop_token& stop) {
  // Headers in a temporary directory would be of no use to a later build.
  const std::string models = build::models_directory("");
  if (models.empty()) return;
  const auto recipe = build::read_recipe(recipe_path());
  const Status made = recipe
                          ? build::make_precompiled_header(*recipe, models, mono_now() + kHeaderTimeout, stop)
                          : tl::unexpected(recipe.error());
  if (made) build::trim_cache({models}, build::kDefaultCacheBytes);
  if (!made && !stop.stop_requested())
    std::cerr << "det: headers not precompiled: " << made.error().message << "; builds take 10 s longer\n";
}

Result<Child> start_harness(const std::string& place, const std::string& library,
                            const std::string& trial_class, const std::vector<std::string>& flags,
                            const std::vector<std::string>& variables) {
  ProcessOptions options;
  options.argv = {prefix() + "/bin/det-harness", "--config", place + "/config.yaml", "--model-dir",
                  place + "/model"};
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  options.argv.push_back(library + ":" + trial_class);
  // With the variables of an agent, the harness would try to connect to its cluster.
  std::vector<std::string> changes{"DET_ALLOCATION_ID", "DET_TRIAL_ID"};
  changes.insert(changes.end(), variables.begin(), variables.end());
  if (needs_spin_count([](const char* name) { return std::getenv(name) != nullptr; }))
    changes.push_back("GOMP_SPINCOUNT=" + std::string(kSpinCount));
  options.env = environment_with(changes);
  options.cwd = place + "/model";
  options.in = Stream::null();
  options.out = options.err = Stream::inherit();
  options.dies_with_us = true;
  auto child = Child::spawn(options);
  if (!child && child.error().code == Code::kNotFound)
    return fail(Code::kFailedPrecondition,
                options.argv[0] + " does not exist; install the training library beside det");
  return child;
}

}  // namespace det::cli
