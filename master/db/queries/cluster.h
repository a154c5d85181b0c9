// Identity of the cluster and facts about its database.
#pragma once

#include <map>

#include "master/db/queries/page.h"

namespace det::db {

/// Identity of the cluster. Stored in the database, so it survives a change of the master's machine.
struct Cluster {
  std::string id;      ///< UUID of the database.
  std::string secret;  ///< 32 random bytes; tokens of allocations of earlier releases derive from it.
};
/// Returns the cluster's identity and creates it on the first call. Safe to call from several masters.
Result<Cluster> load_cluster(Pool& pool);

/// Server and size of the database.
struct DatabaseFacts {
  std::string version;     ///< Server version, such as "15.5".
  std::int64_t bytes = 0;  ///< Size of this database on disk.
};
/// Queries the facts. kUnavailable.
Result<DatabaseFacts> database_facts(Pool& pool);

/// Numbers of rows by state, ended ones included.
struct StateCounts {
  std::map<std::string, std::int64_t> experiments, trials, commands;
};
Result<StateCounts> count_states(Pool& pool);

/// Message of the administrators to all users.
struct ClusterMessage {
  std::string message;
  WallTime starts;
  std::optional<WallTime> ends;  ///< unset: shown until it is cleared
  WallTime created;
};
/// Returns the message unless it has ended; `active`: only if it has begun, too.
Result<std::optional<ClusterMessage>> get_cluster_message(Pool& pool, bool active);
/// Replaces the message. `created` is ignored: the time is now.
Status set_cluster_message(Pool& pool, const ClusterMessage& message);
/// Removes the message. Idempotent.
Status clear_cluster_message(Pool& pool);

}  // namespace det::db
