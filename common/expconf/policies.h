// Config policies: fields that an administrator fixes in every new experiment or task, and limits for users.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/yaml/yaml.h"

namespace det::expconf {

/// Kind of workload that a policy applies to. kTask: a command.
enum class Workload { kExperiment, kTask };

/// A limit and the position that set it.
struct Limit {
  /// Numeric bound, inclusive.
  std::int64_t value = 0;
  /// For messages, such as `config policy:4:5`.
  std::string set_by;
};

/// A parsed policy document, or the combination of several.
struct Policies {
  Workload workload = Workload::kExperiment;
  YamlNode invariants;  ///< partial configuration; null: none
  /// Upper bound of the slots held by all trials of an experiment together, or by a task.
  std::optional<Limit> max_slots;
  /// Most urgent (smallest) priority that users may set.
  std::optional<Limit> priority_limit;
  /// Of the document that read_policies() parsed.
  std::vector<Problem> warnings;
};

/// Parses {invariant_config: …, constraints: {resources: {max_slots}, priority_limit}}. Errors:
/// kInvalidArgument with all problems: types and ranges as for a template, and invariants that violate the
/// constraints.
Result<Policies> read_policies(std::string_view yaml, const std::string& file, Workload workload);

/// Replaces the limits of `policies` with those of `others` that are stricter.
void tighten(Policies& policies, const Policies& others);

}  // namespace det::expconf
