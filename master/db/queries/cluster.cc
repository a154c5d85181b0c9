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

Result<StateCounts> count_states(Pool& pool) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT 'experiments', state, count(*) FROM experiments GROUP BY state"
                        " UNION ALL SELECT 'trials', state, count(*) FROM trials GROUP BY state"
                        " UNION ALL SELECT 'commands', state, count(*) FROM commands GROUP BY state"));
  StateCounts counts;
  for (Rows::Row row : rows) {
    const auto table = row.next<std::string>(), state = row.next<std::string>();
    auto& of = table == "trials" ? counts.trials : table == "commands" ? counts.commands : counts.experiments;
    of[state] = row.next<std::int64_t>();
  }
  return counts;
}

Result<std::optional<ClusterMessage>> get_cluster_message(Pool& pool, bool active) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT message, starts, ends, created FROM cluster_message"
                        " WHERE coalesce(ends > now(), true) AND (NOT $1 OR starts <= now())",
                        active));
  if (rows.empty()) return std::optional<ClusterMessage>();
  ClusterMessage message;
  rows[0].into(message.message, message.starts, message.ends, message.created);
  return std::optional(std::move(message));
}

Status set_cluster_message(Pool& pool, const ClusterMessage& message) {
  TRY(
      pool.query("INSERT INTO cluster_message (message, starts, ends) VALUES ($1, $2, $3) ON CONFLICT (one)"
                 " DO UPDATE SET message = $1, starts = $2, ends = $3, created = now()",
                 message.message, message.starts, message.ends));
  return {};
}

Status clear_cluster_message(Pool& pool) {
  TRY(pool.query("DELETE FROM cluster_message"));
  return {};
}

}  // namespace det::db
