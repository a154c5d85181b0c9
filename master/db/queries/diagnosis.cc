#include "master/db/queries/diagnosis.h"

namespace det::db {

Result<DatabaseFacts> database_facts(Pool& pool) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT current_setting('server_version'), pg_database_size(current_database())"));
  Rows::Row row = rows[0];
  DatabaseFacts facts;
  facts.version = row.next<std::string>();
  facts.bytes = row.next<std::int64_t>();
  return facts;
}

}  // namespace det::db
