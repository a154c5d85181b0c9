// How failures and crashes of a training program are reported.
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "common/base/exit_codes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/process.h"
#include "common/base/text.h"

namespace det {
namespace {

ProcessResult run_failing(const std::string& how, const std::string& storage) {
  const ProcessOptions options{
      .argv = {DET_FAILING_TRIAL, storage, how}, .env = environment_with({"OMP_NUM_THREADS=1"}), .cwd = ""};
  return run_process(options, {.timeout = std::chrono::seconds(60)}).value();
}

ProcessResult run_failing(const std::string& how) {
  return run_failing(how, TemporaryDirectory::create().value().path());
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
      {"missing", kExitRepeatable,
       "error: the training data (batch 3): batch 3 of epoch 0 (records 12, 13, 14, 15): cannot open 13.png "
       "(",
       ")"},
      {"thread", kExitRepeatable, "error: train_batch (batch 3): no such class (failing_trial.cc:", ")"},
      {"memory", kExitFailed, "error: train_batch (batch 3): ", ")"},
      {"nan", kExitRepeatable, "error: train_batch (batch 3): the loss is nan; lower the learning rate", ""},
      {"log", kExitRepeatable, "error: train_batch (batch 3): the loss is nan; lower the learning rate", ")"},
      {"device", kExitFailed, "error: train_batch (batch 3): CUDA error: an illegal memory access", ")"},
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

TEST_CASE("a loss that is NaN is reported with the operator that makes it, and the line of the loss") {
  const ProcessResult result = run_failing("log");
  INFO(result.err);
  const std::regex line(
      ".*; NaN comes from aten::log in .*logarithm.* \\(failing_trial\\.cc:[0-9]+\\) "
      "\\(failing_trial\\.cc:[0-9]+\\)");
  CHECK(std::regex_match(last_line(result.err), line));
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

TEST_CASE("SIGHUP ends a trial, with any LibTorch") {
  const ProcessResult result = run_failing("hangup");
  INFO(result.err);
  CHECK(result.status.signal == SIGHUP);
}

/// The line about records in a report; "" without one.
std::string records_line(const ProcessResult& result) {
  for (const std::string& line : split(result.err, '\n'))
    if (line.starts_with("  record")) return line;
  return "";
}

TEST_CASE("a report names the records of the batch, whatever ended the training") {
  const std::string how = GENERATE(as<std::string>(), "throw", "shape", "segfault", "abort", "division",
                                   "overflow", "memory", "exit", "thread", "nan", "log", "device");
  const ProcessResult result = run_failing(how);
  INFO(how << ": " << result.err);
  // The seed and the epoch alone decide the order of the 18 records, of which batch 3 has four.
  static const std::string expected = records_line(run_failing("throw"));
  CHECK(records_line(result) == expected);
  CHECK(std::regex_match(expected, std::regex("  records [0-9]+, [0-9]+, [0-9]+, [0-9]+ of epoch 0")));
}

TEST_CASE("errors outside of batches and in other batches name their own records, or none") {
  CHECK(records_line(run_failing("hparam")).empty());
  const ProcessResult result = run_failing("evaluate");
  INFO(result.err);
  CHECK(records_line(result) == "  records 0, 1, 2, 3, 4 of epoch 0");
}

TEST_CASE("a crash of a thread that reads data names the records that it reads") {
  const ProcessResult result = run_failing("read");
  INFO(result.err);
  CHECK(result.status.signal == SIGSEGV);
  CHECK(records_line(result) == "  records 12, 13, 14, 15 of epoch 0");
}

TEST_CASE("with stacks, operators of a trace name the lines of the program that call them") {
  const auto storage = TemporaryDirectory::create().value();
  const ProcessResult result = run_failing("stack", storage.path());
  INFO(result.err);
  REQUIRE(result.ok());
  std::string trace;
  for (const auto& entry : std::filesystem::directory_iterator(storage.path() + "/tensorboard"))
    if (entry.path().string().ends_with(".pt.trace.json")) trace = read_file(entry.path().string()).value();
  std::set<std::string> stacks;
  const Json read = parse_json(trace, {.bytes = 64 << 20}).value();
  for (const Json& event : read.at("traceEvents"))
    if (event.at("name") == "aten::addmm")
      stacks.insert(event.at("args").at("Call stack").get<std::string>());
  REQUIRE_FALSE(stacks.empty());
  for (const std::string& stack : stacks) {
    INFO(stack);
    CHECK(std::regex_search(
        stack, std::regex(R"(_batch.*\(fixture\.h:[0-9]+\);.*_batch.*\(failing_trial\.cc:[0-9]+\))")));
  }
}

TEST_CASE("a metric of the searcher that a validation lacks costs no batch, on any number of processes") {
  const std::string processes = GENERATE("1", "2");
  const auto storage = TemporaryDirectory::create().value();
  const ProcessOptions options{
      .argv = {DET_LAUNCH, "--nproc-per-node", processes, "--", DET_FAILING_TRIAL, storage.path(), "metric"},
      .env = environment_with({"OMP_NUM_THREADS=1"}),
      .cwd = ""};
  const ProcessResult result = run_process(options, {.timeout = std::chrono::seconds(60)}).value();
  CAPTURE(processes, result.err);
  CHECK_FALSE(result.ok());
  CHECK_THAT(result.err, Catch::Contains("searcher.metric is \"acuracy\", but the numbers of validation are: "
                                         "accuracy; did you mean"));
  std::vector<std::string> saved;
  for (const auto& entry : std::filesystem::directory_iterator(storage.path()))
    if (const auto text = read_file(entry.path().string() + "/metadata.json")) saved.push_back(*text);
  REQUIRE(saved.size() == 1);
  CHECK_THAT(saved.front(), Catch::Contains("\"steps_completed\": 2"));
}

TEST_CASE("a forked child that exits does not end the training") {
  const ProcessResult result = run_failing("fork");
  INFO(result.err);
  CHECK(result.ok());
}

}  // namespace
}  // namespace det
