// Owns running cases/*.case: a document, and every problem, warning or resolved value it must give.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/json.h"
#include "case_file.h"
#include "master/expconf/parse.h"

namespace det::expconf::test {
namespace {

std::string line_of(const Problem& problem) {
  return std::to_string(problem.line) + ":" + std::to_string(problem.column) + " " +
         (problem.path.empty() ? "-" : problem.path) + " " + problem.code + " " + problem.message;
}

/// "4:15 max_restarts E-CFG-RANGE words" of line_of(); the words may stand anywhere in the message.
bool matches(const std::string& expected, const std::string& line) {
  const std::vector<std::string> parts = split(expected, ' ');
  if (parts.size() < 3) return false;
  const std::string head = parts[0] + " " + parts[1] + " " + parts[2] + " ";
  const std::string words = join({parts.begin() + 3, parts.end()}, " ");
  return line.starts_with(head) && line.find(words, head.size()) != std::string::npos;
}

void check_lines(const std::vector<std::string>& expected, const std::vector<Problem>& got) {
  std::vector<std::string> lines;
  for (const Problem& problem : got) lines.push_back(line_of(problem));
  INFO("got:\n" << join(lines, "\n"));
  REQUIRE(expected.size() == lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    INFO("line " << i + 1 << ": " << expected[i]);
    CHECK(matches(expected[i], lines[i]));
  }
}

void check_value(const std::string& expectation, const Json& resolved) {
  const std::size_t equals = expectation.find(" = ");
  const Json* value = find_path(resolved, expectation.substr(0, equals));
  INFO(expectation);
  REQUIRE(value != nullptr);
  CHECK(dump_json(*value) == expectation.substr(equals + 3));
}

void run(const Case& test) {
  std::string document = test.document;
  Defaults defaults{.checkpoint_storage = nullptr, .experiment_seed = 99, .name = "given"};
  for (const std::string& flag : test.flags) {
    if (flag == "base") document += "entrypoint: run\nsearcher: {name: single, metric: loss}\n";
    if (flag == "random") document += "entrypoint: run\nsearcher: {name: random, metric: loss, max_trials: 2}\n";
    if (flag == "entrypoint") document += "entrypoint: run\n";
    if (flag == "storage")
      defaults.checkpoint_storage = {
          {"type", "shared_fs"}, {"host_path", "/cluster"}, {"save_trial_best", 7}};
  }
  std::vector<Override> overrides;
  for (const std::string& assignment : test.overrides) overrides.push_back({assignment});
  std::vector<std::string> problems, warnings, values;
  for (const std::string& line : test.expected) {
    if (line.starts_with("warning ")) {
      warnings.push_back(line.substr(8));
    } else {
      (line[0] >= '0' && line[0] <= '9' ? problems : values).push_back(line);
    }
  }
  const auto parsed = parse(document, "t.yaml", defaults, overrides);
  if (!parsed) {
    CHECK(parsed.error().code == Code::kInvalidArgument);
    for (const Problem& problem : parsed.error().problems)
      CHECK(problem.file == (problem.line == 0 ? "command line" : "t.yaml"));
    return check_lines(problems, parsed.error().problems);
  }
  REQUIRE(problems.empty());
  check_lines(warnings, parsed->warnings);
  for (const std::string& value : values) check_value(value, parsed->config.resolved);
}

}  // namespace

TEST_CASE("every case of cases/ gives the problems and values it names") {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(DET_SOURCE_DIR "/tests/master/expconf/cases")) {
    const std::vector<Case> cases = read_cases(entry.path().string());
    CHECK(!cases.empty());
    ++files;
    for (const Case& test : cases) {
      INFO(entry.path().filename().string() << ": " << test.title);
      run(test);
    }
  }
  CHECK(files >= 9);
}

}  // namespace det::expconf::test
