// Owns the list of the configuration's sections: each is a Type (what is allowed) in a file of its own.
// Private to expconf.
#pragma once

#include "master/expconf/config.h"
#include "master/expconf/layers.h"
#include "master/expconf/parse.h"
#include "master/expconf/policies.h"
#include "master/expconf/schema.h"

namespace det::expconf {

/// The whole document. Made once: it is most of what reading a configuration costs.
const Type& top_level();
/// What this submission has where nobody says it, in what `top_level` resolved without a problem.
void apply_defaults(Json& resolved, const YamlNode& root, const Defaults& defaults);

/// What in the merged tree does not fit the cluster. `users`: the sources that users write; what the admin
/// mounts is the admin's affair. `slots`: the field that says how many slots it needs at once.
void check_against(Reader& reader, const YamlNode& root, const Json& resolved, const ClusterFacts& cluster,
                   const std::vector<int>& users, const std::string& slots = "resources.slots_per_trial");
/// A command's whole document.
const Type& command_type();

/// Warns of what the user (source 0) said and the sources `policies` overrule. `whom`: "experiment".
void tell_overruled(Reader& reader, const Merged& merged, const std::vector<int>& policies, const char* whom);
/// What in the merged tree breaks the admin's constraints.
void check_limits(Reader& reader, const YamlNode& root, const Policies& policies);
/// Where nobody says it, the constraint is the default.
void apply_limits(Json& resolved, const YamlNode& root, const Policies& policies);

Type searcher_type();
Type hyperparameters_type();
/// The most trials that any search makes.
constexpr std::int64_t kMostTrials = 100'000;
/// What a grid asks of the hyperparameters: a count on every range, and no more than kMostTrials points;
/// nothing is expanded to find out.
void check_grid(Reader& reader, const YamlNode& node, const std::string& path, const Json& resolved);
/// Warns of ranges that a single trial does not search.
void check_single(Reader& reader, const YamlNode& node, const std::string& path, const Json& resolved);
Type resources_type();
Type environment_type();
Type bind_mounts_type();
Type checkpoint_storage_type();
Type optimizations_type();
Type log_policies_type();
/// Policies that every configuration has, unless it has one of the same name.
Json default_log_policies();

/// {batches|records|epochs: n}, n >= min. Resolved: the same.
Type length_type(std::int64_t min);
/// As length_type(1), or a bare number of batches.
Type searcher_length_type();
Length load_length(const Json& resolved);

/// Fills the struct from a resolved configuration. Total on what top_level resolved without a problem.
ExperimentConfig load(Json resolved);
HyperparameterMap load_hyperparameters(const Json& resolved);

}  // namespace det::expconf
