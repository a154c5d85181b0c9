// How failures and crashes of a training program are reported.
#include <catch2/catch.hpp>
#include <csignal>

#include "common/base/exit_codes.h"
#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/text.h"

namespace det {
namespace {

ProcessResult run_failing(const std::string& how) {
  const auto storage = TemporaryDirectory::create().value();
  const ProcessOptions options{.argv = {DET_FAILING_TRIAL, storage.path(), how},
                               .env = environment_with({"OMP_NUM_THREADS=1"}),
                               .cwd = ""};
  return run_process(options, {.timeout = std::chrono::seconds(60)}).value();
}

std::string last_line(const std::string& text) { return split(trim(text), '\n').back(); }

TEST_CASE("an exception ends a trial with a code that tells whether a restart can help") {
  struct Row {
    const char* how;
    int code;
    const char* line;   ///< start of the last line
    const char* place;  ///< end of it
  };
  const Row row = GENERATE(values<Row>({
      {"hparam", kExitFinal, "error: the trial's constructor: no hyperparameter \"learning_rat\"", ""},
      {"file", kExitFailed, "error: the trial's constructor: cannot open the data (failing_trial.cc:", ")"},
      {"throw", kExitRepeatable, "error: train_batch (batch 3): no such class (failing_trial.cc:", ")"},
      {"shape", kExitRepeatable, "error: train_batch (batch 3): mat1 and mat2 shapes cannot be multiplied",
       ")"},
      {"evaluate", kExitRepeatable, "error: evaluate_batch (batch 0): no such class (failing_trial.cc:", ")"},
      {"thread", kExitRepeatable, "error: train_batch (batch 3): no such class (failing_trial.cc:", ")"},
      {"memory", kExitFailed, "error: train_batch (batch 3): ", ")"},
      {"full", kExitStorageFull, "error: train_batch (batch 3): not saved: no space", ")"},
      {"exit", 3, "error: train_batch (batch 3): the trial called exit(3)", ""},
      {"exit 0", kExitFailed, "error: train_batch (batch 3): the trial called exit(0)", ""},
  }));
  const ProcessResult result = run_failing(row.how);
  INFO(row.how << ": " << result.err);
  CHECK(result.status.signal == 0);
  CHECK(result.status.code == row.code);
  CHECK(last_line(result.err).starts_with(row.line));
  CHECK(last_line(result.err).ends_with(row.place));
}

TEST_CASE("a crash is reported with its batch and its line, and keeps its signal") {
  struct Row {
    const char* how;
    int signal;
    const char* line;
    const char* function;
  };
  const Row row = GENERATE(values<Row>({
      {"segfault", SIGSEGV,
       "error: train_batch (batch 3): segmentation fault at address 0x0 (failing_trial.cc:",
       "FailingTrial::fail"},
      {"abort", SIGABRT, "error: train_batch (batch 3): abort (failing_trial.cc:", "FailingTrial::fail"},
      {"division", SIGFPE, "error: train_batch (batch 3): arithmetic error", "FailingTrial::fail"},
      {"overflow", SIGSEGV, "error: train_batch (batch 3): stack overflow", "recurse"},
  }));
  const ProcessResult result = run_failing(row.how);
  INFO(row.how << ": " << result.err);
  CHECK(result.status.signal == row.signal);
  CHECK(last_line(result.err).starts_with(row.line));
  CHECK(result.err.find(row.function) != std::string::npos);
}

TEST_CASE("a forked child that exits does not end the training") {
  const ProcessResult result = run_failing("fork");
  INFO(result.err);
  CHECK(result.ok());
}

}  // namespace
}  // namespace det
