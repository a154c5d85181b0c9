#include "master/db/store/locks.h"

namespace det::db {

Statement lock_tasks(const std::vector<std::string>& tasks) {
  // 0x646574 ("det") separates these locks from those of other programs in a shared database.
  return {
      "SELECT pg_advisory_xact_lock(6579572, key) FROM"
      " (SELECT DISTINCT hashtext(task) AS key FROM unnest($1::text[]) AS task ORDER BY key) AS keys",
      Params(tasks)};
}

}  // namespace det::db
