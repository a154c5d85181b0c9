// Sections of the configuration: one Type each, implemented in a file of its own. Private to expconf.
#pragma once

#include "common/expconf/config.h"
#include "common/expconf/layers.h"
#include "common/expconf/parse.h"
#include "common/expconf/policies.h"
#include "common/expconf/schema.h"

namespace det::expconf {

/// Type of the whole document. Built once, since building it is most of the cost of parsing.
const Type& top_level();
/// Fills in the submission's own defaults (name, seed) where no layer sets them. `resolved` is the result of
/// top_level() without problems.
void apply_defaults(Json& resolved, const YamlNode& root, const Defaults& defaults);

/// Checks the merged tree against the cluster. `users`: sources written by users; mounts of other sources are
/// exempt. `slots`: path of the field with the number of slots needed at once.
void check_against(Reader& reader, const YamlNode& root, const Json& resolved, const ClusterFacts& cluster,
                   const std::vector<int>& users, const std::string& slots = "resources.slots_per_trial");
/// Adds type and location of the storage that `checkpoint_storage.name` names. Reports an unknown name, and
/// fields of the section that differ from the storage.
void fill_in_storage(Reader& reader, YamlNode& root, const ClusterFacts& cluster);
/// Returns the defaults of the resource pool that `layers` (highest first) select; null if it has none.
const Json* find_pool_defaults(const Defaults& defaults, const std::vector<YamlNode>& layers);
/// Name of that layer in messages.
inline constexpr const char* kPoolDefaults = "the task_container_defaults of the resource pool";
/// Type of a command's whole document.
const Type& command_type();

/// Warns of values of the user (source 0) that the sources `policies` replaced. The last argument is the noun
/// for the message, such as "experiment".
void report_overruled(Reader& reader, const Merged& merged, const std::vector<int>& policies,
                      const char* whom);
/// Reports values of the merged tree that violate the administrator's constraints.
void check_limits(Reader& reader, const YamlNode& root, const Policies& policies);
/// Uses the constraints as defaults of unset fields.
void apply_limits(Json& resolved, const YamlNode& root, const Policies& policies);

// Types of the sections.
Type searcher_type();
Type hyperparameters_type();
/// Limit of the trials of one search.
constexpr std::int64_t kMaxTrials = 100'000;
/// Checks the hyperparameters of a grid search: every range has a count, and there are at most kMaxTrials
/// points. Does not expand the grid.
void check_grid(Reader& reader, const YamlNode& node, const std::string& path, const Json& resolved);
/// Warns of ranges in a single search, which tries one value only.
void check_single(Reader& reader, const YamlNode& node, const std::string& path, const Json& resolved);
Type resources_type();
Type environment_type();
Type bind_mounts_type();
Type checkpoint_storage_type();
Type optimizations_type();
Type log_policies_type();
/// Log policies that are added unless the configuration has one with the same name.
Json default_log_policies();

/// {batches|records|epochs: n} with n >= min. Resolved: the same map.
Type length_type(std::int64_t min);
/// Like length_type(1), or a number of batches.
Type searcher_length_type();
/// Converts the resolved form of a length.
Length load_length(const Json& resolved);

/// Converts a resolved configuration to the struct. Total for results of top_level() without problems.
ExperimentConfig load(Json resolved);
HyperparameterMap load_hyperparameters(const Json& resolved);

}  // namespace det::expconf
