#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/base/json.h"
#include "common/base/process.h"
#include "test_paths.h"

namespace det {

/// The output of golden.py for `what`, with `input` as JSON. Null if /usr/bin/python3 has no torch. Throws
/// std::runtime_error with the output on any other failure.
inline Json golden(const std::string& what, const Json& input = Json::object()) {
  const RunLimits limits{.timeout = std::chrono::seconds(120)};
  const char* look = "import importlib.util as u; exit(u.find_spec('torch') is None)";
  const auto has_torch = run_process({.argv = {"/usr/bin/python3", "-c", look}}, limits);
  if (!has_torch || !has_torch->ok()) return nullptr;
  const auto result =
      run_process({.argv = {"/usr/bin/python3", source_path("/tests/harness/optim/golden.py"), what}}, limits,
                  dump_json(input));
  if (!result) throw std::runtime_error(result.error().message);
  if (!result->ok()) throw std::runtime_error("golden.py: " + to_string(result->status) + "\n" + result->err);
  auto parsed = parse_json(result->out, {.bytes = 16 << 20});
  if (!parsed) throw std::runtime_error("golden.py: " + parsed.error().message);
  return *parsed;
}

}  // namespace det
