// Owns config policies: what the admin fixes in every new experiment or task, and how far users may go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/yaml.h"

namespace det::expconf {

/// What policies are for: an experiment, or what runs beside them (a command).
enum class Workload { kExperiment, kTask };

/// A limit with the place that set it.
struct Limit {
  std::int64_t value = 0;
  std::string set_by;  ///< `config policy:4:5`
};

struct Policies {
  Workload workload = Workload::kExperiment;
  YamlNode invariants;  ///< a part of a configuration; null: none
  std::optional<Limit>
      max_slots;  ///< the most slots that all trials of an experiment, or a task, hold together
  std::optional<Limit> priority_limit;  ///< the most urgent (smallest) priority that users may ask for
  std::vector<Problem> warnings;
};

/// Reads {invariant_config: …, constraints: {resources: {max_slots}, priority_limit}}. Failure:
/// kInvalidArgument with all problems: of types and ranges as for a template, and where an invariant breaks a
/// constraint itself.
Result<Policies> read_policies(std::string_view yaml, const std::string& file, Workload workload);

/// Takes over the limits of `others` that are stricter than its own.
void tighten(Policies& policies, const Policies& others);

}  // namespace det::expconf
