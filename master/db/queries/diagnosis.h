// Facts about the database server, for the diagnosis API.
#pragma once

#include "master/db/queries/queries.h"

namespace det::db {

/// Server and size of the database.
struct DatabaseFacts {
  std::string version;     ///< Server version, such as "15.5".
  std::int64_t bytes = 0;  ///< Size of this database on disk.
};
/// Queries the facts. kUnavailable.
Result<DatabaseFacts> database_facts(Pool& pool);

}  // namespace det::db
