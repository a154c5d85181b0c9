// Schema migrations. Forward only, one transaction per step together with its row in schema_migrations: a
// kill at any point leaves a complete schema, and the next start continues.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "master/db/pg/pg.h"

namespace det::db {

/// One file of master/db/migrations, compiled into the program.
struct Migration {
  std::int64_t version = 0;  ///< Number at the start of the file name.
  std::string name;          ///< File name without ".sql".
  /// Statements of the step; runs in one transaction.
  std::string sql;
};
/// All migrations, ordered and numbered from 1 without gaps.
const std::vector<Migration>& migrations();

/// Migrates the database to the newest of `steps`. The caller must hold the writer lock. Idempotent.
/// kFailedPrecondition: the schema is newer than the last step.
Status migrate(Connection& connection, const std::vector<Migration>& steps = migrations());

}  // namespace det::db
