// Runs an example's program in a temporary folder and parses its output.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <regex>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/process.h"
#include "test_paths.h"

namespace det::testing {

inline const std::string kExamples = source_path("/examples");
inline const std::string kTests = source_path("/tests/examples");
inline const std::string kPrograms = build_path("/examples");

struct Run {
  int code = 0;
  std::string out, err;
};

inline Run run_in(const std::string& folder, std::vector<std::string> argv, int seconds = 300) {
  ProcessOptions options{
      .argv = std::move(argv), .env = environment_with({"OMP_NUM_THREADS=1"}), .cwd = folder};
  const ProcessResult result = run_process(options, {.timeout = std::chrono::seconds(seconds)}).value();
  return {result.status.shell_code(), result.out, result.err};
}

/// All numbers in `text` that follow the pattern `before`, such as "loss ".
inline std::vector<double> numbers_after(const std::string& text, const std::string& before) {
  std::vector<double> numbers;
  const std::regex pattern(before + "(-?[0-9][0-9.e+-]*)");
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    numbers.push_back(std::stod((*at)[1]));
  }
  return numbers;
}

/// A configuration with pieces of its text replaced, such as `dir: data` by `dir: /there`. Fails the test if
/// a piece is missing.
inline std::string edited(std::string text, const std::vector<std::pair<std::string, std::string>>& edits) {
  for (const auto& [from, to] : edits) {
    INFO("looking for " << from << " in\n" << text);
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
  }
  return text;
}

/// A temporary folder for the configuration and data of one run.
class Workplace {
 public:
  Workplace() = default;
  void add(const std::string& name, const std::string& text) {
    REQUIRE(write_file_atomic(path() + "/" + name, text).has_value());
  }
  void add_edited(const std::string& example, const std::string& name,
                  const std::vector<std::pair<std::string, std::string>>& edits) {
    add(name, edited(read_file(kExamples + "/" + example + "/" + name).value(), edits));
  }
  const std::string& path() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::create().value();
};

}  // namespace det::testing
