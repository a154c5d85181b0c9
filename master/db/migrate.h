// Owns the way from any older schema to this program's: forward only, one transaction a step, each with its
// row in schema_migrations, so that a kill anywhere leaves a whole schema and the next start goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "master/db/pg.h"

namespace det::db {

/// One file of master/db/migrations, built into the program.
struct Migration {
  std::int64_t version = 0;  ///< the number its name begins with
  std::string name;          ///< file name without ".sql"
  std::string sql;
};
/// In order, numbered from 1 without gaps.
const std::vector<Migration>& migrations();

/// Brings the database to the newest of `steps`. The caller holds the writer's lock. kFailedPrecondition when
/// the database is newer than the last step. Repeats safely.
Status migrate(Connection& connection, const std::vector<Migration>& steps = migrations());

}  // namespace det::db
