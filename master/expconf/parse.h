// Owns reading an experiment configuration: YAML or stored JSON → ExperimentConfig, with all problems at
// once, each with its place, the allowed values and the nearest name. Pure: what needs the cluster (pools,
// workspaces, storage allow-lists) is checked by the master afterwards.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "master/expconf/config.h"

namespace det::expconf {

/// What the cluster fills in where the user is silent (merge order: determined-0.38 §1.1).
struct Defaults {
  nlohmann::ordered_json checkpoint_storage;  ///< the master's `checkpoint_storage`; null: none configured
  std::uint32_t experiment_seed = 0;          ///< used when the user gives none
  std::string name;                           ///< likewise
};

/// `--config path.to.key=value`, applied over the document; the value is read as YAML.
struct Override {
  std::string assignment;
};

struct Parsed {
  ExperimentConfig config;
  std::vector<Problem> warnings;
};

/// Failure: kInvalidArgument with at most 20 problems, in document order (promises §6 lists the codes).
Result<Parsed> parse(std::string_view yaml, const std::string& file, const Defaults& defaults,
                     const std::vector<Override>& overrides = {});
/// Reads ExperimentConfig::resolved back (from the store).
Result<ExperimentConfig> from_resolved(const nlohmann::ordered_json& resolved);

/// The `--config` assignments merged into the document's text, as upstream's CLI does before it sends the
/// config.
Result<std::string> apply_overrides(std::string_view yaml, const std::string& file,
                                    const std::vector<Override>& overrides);

}  // namespace det::expconf
