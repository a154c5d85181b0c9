// Owns what a submission is held against: the pools as the core sees them, projects and checkpoints as the
// database knows them.
#pragma once

#include "master/api/context.h"
#include "master/expconf/cluster.h"

namespace det::api {

/// Pools: the default one and those that agents are in. Fails when the core or the database does not answer.
/// What the caller may not see is not there. The functions of the answer ask the database, and take a silent
/// one for a yes; they need the caller to live.
Result<expconf::ClusterFacts> cluster_facts(const Context& context, const Caller& caller);

}  // namespace det::api
