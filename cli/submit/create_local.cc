#include "cli/submit/create_local.h"

#include <cstdlib>
#include <filesystem>
#include <future>
#include <iostream>

#include "cli/output/print.h"
#include "cli/output/progress.h"
#include "common/archive/archive.h"
#include "common/base/files.h"
#include "common/base/openmp.h"
#include "common/base/process.h"
#include "common/base/units.h"
#include "common/build/cache.h"
#include "common/build/model_build.h"

namespace det::cli {
namespace {

using namespace std::chrono_literals;

/// Prefix of the installation that this program belongs to: it holds bin/ and share/det/.
std::string prefix() { return std::filesystem::path(program_path()).parent_path().parent_path().string(); }

/// Returns the path of the compiled trial; "" when it does not compile, after printing the compiler's output.
Result<std::string> build(const build::BuildRequest& request) {
  const std::string source = request.trial.module + ".cpp";
  std::cout << "Building " << source << "... " << std::flush;
  const MonoTime begin = mono_now();
  // The build runs in its own thread so that the progress line can show the elapsed time.
  auto built = std::async(std::launch::async, [&] { return build::build_model(request, {}); });
  {
    ProgressBar bar("building " + source);
    while (built.wait_for(200ms) != std::future_status::ready) bar.note(human_duration(mono_now() - begin));
  }
  TRY_ASSIGN(const build::BuildOutcome outcome, built.get());
  if (outcome.library.empty()) {
    std::cout << "failed" << std::endl;
    std::cerr << printable_lines(outcome.output);
    return std::string();
  }
  std::cout << (outcome.cached ? "built before" : "built in " + human_duration(mono_now() - begin))
            << std::endl;
  if (!outcome.output.empty()) std::cerr << printable_lines(outcome.output);
  return outcome.library;
}

/// Runs det-harness in test mode on the compiled trial. Returns its exit code.
Result<int> run_one_batch(const std::string& library, const std::string& trial_class,
                          const std::string& place) {
  ProcessOptions options;
  options.argv = {prefix() + "/bin/det-harness",
                  "--config",
                  place + "/config.yaml",
                  "--model-dir",
                  place + "/model",
                  "--checkpoint-dir",
                  place + "/checkpoints",
                  "--test-mode",
                  library + ":" + trial_class};
  // With the variables of an agent, the harness would try to connect to its cluster.
  std::vector<std::string> changes{"DET_ALLOCATION_ID", "DET_TRIAL_ID"};
  if (needs_spin_count([](const char* name) { return std::getenv(name) != nullptr; }))
    changes.push_back("GOMP_SPINCOUNT=" + std::string(kSpinCount));
  options.env = environment_with(changes);
  options.cwd = place + "/model";
  options.in = Stream::null();
  options.out = options.err = Stream::inherit();
  auto child = Child::spawn(options);
  if (!child && child.error().code == Code::kNotFound)
    return fail(Code::kFailedPrecondition,
                options.argv[0] + " does not exist; install the training library beside det");
  if (!child) return tl::unexpected(child.error());
  for (;;) {
    if (const auto status = child->wait(1h)) return status->shell_code();
  }
}

}  // namespace

Result<int> test_locally(const expconf::ExperimentConfig& config, const std::string& config_text,
                         const CodeArchive& archive) {
  const auto trial =
      config.entrypoint.size() == 1 ? build::parse_trial_name(config.entrypoint[0]) : std::nullopt;
  if (!trial) {
    return fail(
        Code::kInvalidArgument,
        "--local --test runs a trial class (entrypoint: model_def:MyTrial); run a command line yourself");
  }
  TRY_ASSIGN(const TemporaryDirectory place, TemporaryDirectory::create("det-test"));
  TRY(unpack(archive.bytes, place.path() + "/model"));
  TRY(write_file_atomic(place.path() + "/config.yaml", config_text));
  auto recipe = build::read_recipe(prefix() + "/share/det/model_build.json");
  if (!recipe) {
    return fail(Code::kFailedPrecondition,
                recipe.error().message +
                    ": the training library is not installed beside det; without --local the "
                    "cluster tests it");
  }
  const std::string models = build::models_directory(place.path() + "/models");
  TRY(make_directories(models));
  TRY_ASSIGN(const std::string library, build({.recipe = std::move(*recipe),
                                               .trial = *trial,
                                               .source_dir = place.path() + "/model",
                                               .models_dir = models}));
  if (library.empty()) return 1;
  std::cout << "Training, validating and saving one batch..." << std::endl;
  TRY_ASSIGN(const int code, run_one_batch(library, trial->trial_class, place.path()));
  if (code != 0)
    return fail(Code::kAborted,
                "the trial ended with exit code " + std::to_string(code) + "; its last lines say why");
  std::cout << "The trial works: one batch was trained, validated and saved\n";
  return 0;
}

}  // namespace det::cli
