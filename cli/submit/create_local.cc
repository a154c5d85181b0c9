#include "cli/submit/create_local.h"

#include <unistd.h>

#include <iostream>

#include "cli/submit/local_trial.h"

namespace det::cli {

using namespace std::chrono_literals;

Result<int> test_locally(const expconf::ExperimentConfig& config, const std::string& config_text,
                         const CodeArchive& archive) {
  TRY_ASSIGN(const build::TrialName trial, local_trial_name(config, "--local --test"));
  TRY_ASSIGN(const TemporaryDirectory place, unpack_trial(config_text, archive.bytes));
  TRY_ASSIGN(const auto build, LocalBuild::start(trial, place.path()));
  while (!build->poll(200ms)) continue;
  TRY_ASSIGN(const std::string library, build->take());
  if (library.empty()) return 1;
  std::cout << "Training, validating and saving one batch..." << std::endl;
  TRY_ASSIGN(Child harness,
             start_harness(place.path(), library, trial.trial_class,
                           {"--checkpoint-dir", place.path() + "/checkpoints", "--test-mode"}));
  std::optional<ExitStatus> status;
  while (!status) status = harness.wait(1h);
  if (!status->ok())
    return fail(Code::kAborted, "the trial ended with exit code " + std::to_string(status->shell_code()) +
                                    "; its last lines say why");
  std::cout << "The trial works: one batch was trained, validated and saved" << std::endl;
  // Edits follow where a person reads this.
  if (build->without_header() && ::isatty(STDOUT_FILENO) == 1) {
    std::cout << "Precompiling the headers of LibTorch for later builds (10 s; Ctrl-C skips it)..."
              << std::endl;
    precompile({});
  }
  return 0;
}

}  // namespace det::cli
