// Owns reading an experiment configuration: YAML or stored JSON → ExperimentConfig, with all problems at
// once, each with its place, the allowed values and the nearest name. Pure: what is known of the cluster
// comes as values.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "master/expconf/cluster.h"
#include "master/expconf/config.h"

namespace det::expconf {

/// A document that goes with the user's; problems in it name it.
struct Document {
  std::string name;  ///< `template "x"`
  std::string text;  ///< YAML
};

/// What is said beside the user's file. Merge order (determined-0.38 §1.1), highest first: the invariants of
/// the policies in their order, the user's file with its overrides, the template, task_container_defaults,
/// checkpoint_storage, the defaults of the fields. Of several policies' limits the strictest holds.
struct Defaults {
  nlohmann::ordered_json checkpoint_storage;  ///< the master's `checkpoint_storage`; null: none configured
  nlohmann::ordered_json
      task_container_defaults;        ///< the master's, as read_task_defaults() gives them; null: none
  std::uint32_t experiment_seed = 0;  ///< used when the user gives none
  std::string name;                   ///< likewise
  std::vector<Document> policies;     ///< config policies: the cluster's, then the workspace's
  std::optional<Document> template_;
};

/// `--config path.to.key=value`, applied over the document; the value is read as YAML.
struct Override {
  std::string assignment;
};

struct Parsed {
  ExperimentConfig config;
  std::vector<Problem> warnings;
};

/// Failure: kInvalidArgument with at most 20 problems, in document order (promises §6 lists the codes). With
/// `cluster`, also what does not fit it.
Result<Parsed> parse(std::string_view yaml, const std::string& file, const Defaults& defaults,
                     const std::vector<Override>& overrides = {}, const ClusterFacts* cluster = nullptr);
/// Where a configuration wants its experiment to be.
struct Placement {
  std::string workspace, project;
  bool operator==(const Placement&) const = default;
};
/// Read from the same layers as parse(), before policies of the workspace can be known. Empty where nothing
/// is said, or nothing can be read: parse() says why.
Placement placement(std::string_view yaml, const std::string& file, const Defaults& defaults);

/// Reads ExperimentConfig::resolved back (from the store). Fields that go together badly are no failure: what
/// ran once is not kept from running on by a check that was added since.
Result<ExperimentConfig> from_resolved(const nlohmann::ordered_json& resolved);

/// Checks a part of a configuration, such as a template: types and ranges; nothing is missing from it.
/// Warnings.
Result<std::vector<Problem>> check_part(std::string_view yaml, const std::string& file);

/// The master's `task_container_defaults` in the form of an experiment's configuration. Problems have no
/// place.
struct TaskDefaults {
  nlohmann::ordered_json config;
  std::vector<Problem> warnings;
};
Result<TaskDefaults> read_task_defaults(const YamlNode& tree);

/// The `--config` assignments merged into the document's text, as upstream's CLI does before it sends the
/// config.
Result<std::string> apply_overrides(std::string_view yaml, const std::string& file,
                                    const std::vector<Override>& overrides);

/// Every field as a Markdown table a section: what the reference page shows.
std::string reference();

}  // namespace det::expconf
