#include "master/db/pg/migrate.h"

#include "common/base/log.h"

namespace det::db {
namespace {

Status apply(Connection& connection, const Migration& step) {
  // The step and its row in schema_migrations commit together.
  TRY(connection.begin());
  TRY(connection.script(step.sql));
  TRY(connection.query("INSERT INTO schema_migrations (version, name) VALUES ($1, $2)", step.version,
                       step.name));
  return connection.commit();
}

}  // namespace

Status migrate(Connection& connection, const std::vector<Migration>& steps) {
  TRY(connection.script(
      "CREATE TABLE IF NOT EXISTS schema_migrations (version bigint PRIMARY KEY, name text NOT NULL,"
      " applied timestamptz NOT NULL DEFAULT now())"));
  TRY_ASSIGN(const Rows rows,
             connection.query("SELECT coalesce(max(version), 0)::bigint FROM schema_migrations"));
  const auto present = rows[0].next<std::int64_t>();
  const std::int64_t newest = steps.empty() ? 0 : steps.back().version;
  // There is no downgrade: an older program could misread newer rows.
  if (present > newest)
    return fail(Code::kFailedPrecondition, "the database has schema version " + std::to_string(present) +
                                               ", made by a newer det-master; this one knows " +
                                               std::to_string(newest) + ": start the newer program");
  for (const Migration& step : steps) {
    if (step.version <= present) continue;
    if (Status status = apply(connection, step); !status) {
      connection.rollback();
      Error error = status.error();
      error.message = "migration " + step.name + ": " + error.message;
      return tl::unexpected(std::move(error));
    }
    log::info("database migrated", {{"step", step.name}});
  }
  return {};
}

}  // namespace det::db
