#include "master/db/queries/cluster.h"

#include "common/base/secret.h"

namespace det::db {

Result<Cluster> load_cluster(Pool& pool) {
  // When several masters start on a new database, one insert wins and all read its row.
  const std::string secret = random_bytes(32);
  TRY(pool.query("INSERT INTO cluster (id, secret) VALUES ($1, $2) ON CONFLICT DO NOTHING", uuid4(),
                 Bytes{secret}));
  TRY_ASSIGN(const Rows rows, pool.query("SELECT id, secret FROM cluster"));
  Cluster cluster;
  rows[0].into(cluster.id, cluster.secret);
  return cluster;
}

Result<DatabaseFacts> database_facts(Pool& pool) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT current_setting('server_version'), pg_database_size(current_database())"));
  DatabaseFacts facts;
  rows[0].into(facts.version, facts.bytes);
  return facts;
}

}  // namespace det::db
