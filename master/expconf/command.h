// Owns what the configuration of a command means: a command line in an allocation (determined-0.38 §4.7),
// plain data, every default filled in; and reading it, with all problems at once, as parse.h does for
// experiments.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "master/expconf/cluster.h"
#include "master/expconf/parse.h"

namespace det::expconf {

struct CommandConfig {
  std::string description;
  std::vector<std::string> entrypoint;  ///< what is run, and its arguments; never empty
  int slots = 1;                        ///< all on one agent; 0: a place on an agent and none of its devices
  std::string resource_pool;            ///< "" is the cluster's default
  int priority = 42;
  double weight = 1;
  std::map<std::string, std::string> environment_variables;
  /// The whole configuration as JSON with every default filled in: what is stored and shown.
  nlohmann::ordered_json resolved;
};

struct ParsedCommand {
  CommandConfig config;
  std::vector<Problem> warnings;
};

/// Of `defaults` the policies (those of tasks), the template and task_container_defaults are used. Failure:
/// kInvalidArgument with at most 20 problems, in document order. With `cluster`, also what does not fit it.
Result<ParsedCommand> parse_command(std::string_view yaml, const std::string& file, const Defaults& defaults,
                                    const ClusterFacts* cluster = nullptr);
/// Reads CommandConfig::resolved back (from the store).
Result<CommandConfig> command_from_resolved(const nlohmann::ordered_json& resolved);

}  // namespace det::expconf
