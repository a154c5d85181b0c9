// Parser of experiment configurations: YAML or stored JSON → ExperimentConfig. Reports all problems at once,
// each with position, allowed values and the nearest name. Pure: facts of the cluster are passed as values.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/expconf/cluster.h"
#include "common/expconf/config.h"
#include "common/yaml/yaml.h"

namespace det::expconf {

/// A further document of the submission. Problems in it carry its name.
struct Document {
  /// Name in messages, such as `template "x"`.
  std::string name;
  /// YAML text.
  std::string text;
};

/// The defaults of tasks that an administrator sets for the cluster or for a pool.
struct TaskDefaults {
  nlohmann::ordered_json config;  ///< in the layout of an experiment configuration
  std::string startup_hook;       ///< shell script to run before the entrypoint; "": none
  std::vector<Problem> warnings;  ///< without positions
};

/// Layers beside the user's file. Precedence, highest first:
///
///   1. invariants of the config policies, in their order
///   2. the user's file with its overrides
///   3. the template
///   4. task_container_defaults of the resource pool that layers 1 to 3 select, else of the default pool
///   5. task_container_defaults of the master
///   6. checkpoint_storage of the master
///   7. defaults of the fields
///
/// Constraints of several policies combine to the strictest.
struct Defaults {
  /// The master's `checkpoint_storage`; null: none configured.
  nlohmann::ordered_json checkpoint_storage;
  /// The master's defaults as returned by read_task_defaults(); null: none.
  nlohmann::ordered_json task_container_defaults;
  std::map<std::string, TaskDefaults> pool_task_defaults;  ///< by pool
  std::string default_pool;
  std::uint32_t experiment_seed = 0;  ///< used if no layer sets it
  std::string name;                   ///< used if no layer sets it
  /// Config policies: the cluster's, then the workspace's.
  std::vector<Document> policies;
  std::optional<Document> template_;
  std::string entrypoint;  ///< used if no layer sets it; "" makes the field required
};

/// An assignment `path.to.key=value`, applied over the document. The value is parsed as YAML.
struct Override {
  std::string assignment;
};

/// Result of parse().
struct Parsed {
  ExperimentConfig config;
  std::vector<Problem> warnings;
};

/// Parses and checks an experiment configuration. With `cluster`, checks against its facts too. Errors:
/// kInvalidArgument with at most 20 problems, in document order.
Result<Parsed> parse(std::string_view yaml, const std::string& file, const Defaults& defaults,
                     const std::vector<Override>& overrides = {}, const ClusterFacts* cluster = nullptr);
/// Workspace and project of an experiment; "" if unset.
struct Placement {
  std::string workspace, project;
  bool operator==(const Placement&) const = default;
};
/// Returns the placement from the same layers as parse(), before the policies of the workspace are known.
/// Returns an empty placement if nothing is set or a document is unreadable; parse() reports the problem.
Placement placement(std::string_view yaml, const std::string& file, const Defaults& defaults);

/// Parses a stored ExperimentConfig::resolved. Conflicts between fields are not an error, so that a check
/// added in a later release does not stop a running experiment. Errors: kInvalidArgument.
Result<ExperimentConfig> from_resolved(const nlohmann::ordered_json& resolved);

/// Returns the value at a dotted path of a configuration, which may be incomplete and unchecked. If it is
/// unset or null, returns the default of the field; null without one.
const nlohmann::ordered_json* find_setting(const nlohmann::ordered_json& config, std::string_view path);

/// Checks types and ranges of a part of an experiment's or a command's configuration, such as a template.
/// Missing fields are no problem. The problems are those of an experiment's configuration.
/// Returns the warnings. Errors: kInvalidArgument.
Result<std::vector<Problem>> check_part(std::string_view yaml, const std::string& file);

/// Checks `task_container_defaults` and converts it. Problems carry no position. Errors: kInvalidArgument.
Result<TaskDefaults> read_task_defaults(const YamlNode& tree);

/// Applies the assignments to a tree, in order, and creates missing maps. New nodes have line 0. Errors:
/// kInvalidArgument with one problem for each bad assignment, in the file "command line".
Status override_tree(YamlNode& root, const std::vector<Override>& overrides);

/// Merges `--config` assignments into the text of a document, as Determined AI's CLI does before submission.
/// Returns `yaml` unchanged if there are none. Errors: kInvalidArgument.
Result<std::string> apply_overrides(std::string_view yaml, const std::string& file,
                                    const std::vector<Override>& overrides);

/// Returns every field as Markdown, one table a section, for the reference page.
std::string reference();

}  // namespace det::expconf
