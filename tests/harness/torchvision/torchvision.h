// Python's torchvision as the judge of transforms and models.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/process.h"
#include "test_paths.h"

namespace det::testing {

/// Runs torchvision_golden.py with `input` and Debian's Python. Returns its output; nullopt when
/// /usr/bin/python3 has no torchvision (Debian: python3-torchvision). Throws std::runtime_error with the
/// output on any other failure.
inline std::optional<std::string> torchvision(const std::vector<std::string>& arguments,
                                              const std::string& input = "") {
  const RunLimits limits{.timeout = std::chrono::seconds(300)};
  const char* look = "import importlib.util as u; exit(u.find_spec('torchvision') is None)";
  const auto found = run_process({.argv = {"/usr/bin/python3", "-c", look}}, limits);
  if (!found || !found->ok()) return std::nullopt;
  ProcessOptions options{
      .argv = {"/usr/bin/python3", source_path("/tests/harness/torchvision/torchvision_golden.py")}};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  const auto result = run_process(options, limits, input);
  if (!result) throw std::runtime_error(result.error().message);
  if (!result->ok()) throw std::runtime_error("torchvision_golden.py: " + result->err);
  return result->out;
}

}  // namespace det::testing
