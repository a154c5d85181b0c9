// Owns what a submission is held against: the pools as the core sees them, projects and checkpoints as the
// database knows them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "master/api/context.h"
#include "master/expconf/cluster.h"
#include "master/scheduler/fits.h"

namespace det::api {

/// The default pool and those that agents are in. Asked for when it is made, so that the core answers while
/// something else is done.
class Pools {
 public:
  explicit Pools(const Context& context);
  /// Waits; kUnavailable when the core does not answer. Once.
  Result<std::vector<scheduler::PoolShape>> take();

 private:
  // Shared: the core may look at it after the call has given up waiting.
  std::shared_ptr<std::map<std::string, scheduler::PoolShape>> found_;
  loop::Look look_;
};

/// Fails when the core or the database does not answer. What the caller may not see is not there. The
/// functions of the answer ask the database, and take a silent one for a yes; they need the caller to live.
Result<expconf::ClusterFacts> cluster_facts(const Context& context, const Caller& caller, Pools& pools);

}  // namespace det::api
