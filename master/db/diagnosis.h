// Owns what the database says of itself.
#pragma once

#include "master/db/queries.h"

namespace det::db {

struct DatabaseFacts {
  std::string version;     ///< "15.5"
  std::int64_t bytes = 0;  ///< of this database
};
Result<DatabaseFacts> database_facts(Pool& pool);

}  // namespace det::db
