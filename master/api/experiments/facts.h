// State of the cluster that submissions are validated against: pools from the core, projects and checkpoints
// from the database.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/expconf/parse.h"
#include "common/yaml/yaml.h"
#include "master/api/context.h"
#include "master/scheduler/fits.h"

namespace det::api {

/// The default pool and all pools with agents. The constructor starts the query, so that other validation can
/// overlap with it.
class Pools {
 public:
  explicit Pools(const Context& context);
  /// Waits for the result. May be called once. Errors: kUnavailable.
  Result<std::vector<scheduler::PoolShape>> take();

 private:
  // Shared: the core may still write to it after a timeout.
  std::shared_ptr<std::map<std::string, scheduler::PoolShape>> found_;
  loop::PendingRead read_;
};

/// Returns callbacks for configuration checks. Objects that the caller may not see do not exist. The
/// callbacks block on the database and treat an unavailable one as a success, but for the right to see an
/// object; they must not outlive `caller`.
/// Pools that are bound to other workspaces than `workspace` do not exist either.
/// Errors: kUnavailable.
Result<expconf::ClusterFacts> cluster_facts(const Context& context, const Caller& caller, Pools& pools,
                                            std::int64_t workspace);

/// Returns the layers of configurations that come from the master's settings.
expconf::Defaults settings_defaults(const Settings& settings);

/// Checks the `checkpoint_storage` of a part of an experiment's configuration, such as a template. `document`
/// is the part, `file` its name in problems. Errors: kInvalidArgument with a Problem.
Status check_storage_of_part(const Context& context, const YamlNode& document, const std::string& file);

}  // namespace det::api
