// Facts about the cluster that a configuration is checked against, as plain values and callbacks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"

namespace det::expconf {

/// Unset or empty members disable their check. Callbacks are called on the thread of parse().
struct ClusterFacts {
  /// Names of the resource pools; empty: pools and slots are not checked.
  std::vector<std::string> pools;
  /// Returns why a pool can never hold a trial of that many slots, and what would fit. Returns "" if it can,
  /// or if the capacity of the pool is unknown.
  std::function<std::string(const std::string& pool, int slots, bool single_node)> unfit;
  std::string default_pool;
  /// Whether a configuration that no agent could run is an error (master option `launch_error`). If false, it
  /// is a warning and the experiment waits. Slots that a command names itself are always checked.
  bool launch_error = true;
  /// Returns whether the project exists and is visible to the user. Null: not checked.
  std::function<bool(const std::string& workspace, const std::string& project)> has_project;
  /// Directories that may be mounted, with all below them; empty: any.
  std::vector<std::string> host_paths;
  /// Returns why an experiment may not use a resolved `checkpoint_storage`; "" if it may. Null: not checked.
  std::function<std::string(const Json& storage)> storage_refusal;
  /// Returns the section that stands for a named storage. Errors: kNotFound with the names that exist. Null:
  /// names stay as they are.
  std::function<Result<Json>(const std::string& name)> storage_section;
  /// whether the trial has a checkpoint to start from; null: not checked
  std::function<bool(std::int64_t trial)> has_trial;
  /// whether the checkpoint is available; null: not checked
  std::function<bool(const std::string& uuid)> has_checkpoint;
};

}  // namespace det::expconf
