// Configuration of a command: a command line that runs in an allocation. Plain data with every default filled
// in, and its parser, which reports all problems at once as parse.h does for experiments.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/expconf/cluster.h"
#include "common/expconf/parse.h"

namespace det::expconf {

/// A valid command configuration.
struct CommandConfig {
  std::string description;
  std::vector<std::string> entrypoint;  ///< argument vector; never empty
  /// Slots, all on one agent; 0: runs on an agent without any device.
  int slots = 1;
  std::string resource_pool;  ///< "": the default pool
  /// Smaller runs first, 1 to 99.
  int priority = 42;
  /// Share of the resource pool under fair sharing.
  double weight = 1;
  std::map<std::string, std::string> environment_variables;
  /// The whole configuration as JSON with every default filled in; this is stored and displayed.
  nlohmann::ordered_json resolved;
};

/// Result of parse_command.
struct ParsedCommand {
  CommandConfig config;
  std::vector<Problem> warnings;
};

/// Parses a command configuration. Uses the policies (for tasks), template and task_container_defaults of
/// `defaults`. With `cluster`, checks against its facts too. Errors: kInvalidArgument with at most 20
/// problems, in document order. Pure.
Result<ParsedCommand> parse_command(std::string_view yaml, const std::string& file, const Defaults& defaults,
                                    const ClusterFacts* cluster = nullptr);
/// Parses a stored CommandConfig::resolved. Errors: kInvalidArgument.
Result<CommandConfig> command_from_resolved(const nlohmann::ordered_json& resolved);

}  // namespace det::expconf
