#include "master/import/determined.h"

#include "determined_tables.h"
#include "master/db/series/metric_chunk.h"

namespace det::import {
namespace {

/// Version of the last migration of Determined AI 0.38.0 and 0.38.1.
constexpr std::int64_t kSchema038 = 20241024164947;

Result<std::int64_t> number(db::Connection& connection, db::Sql sql) {
  TRY_ASSIGN(const db::Rows rows, connection.query(sql));
  return rows[0].next<std::int64_t>();
}

Status check_source(db::Connection& from) {
  TRY_ASSIGN(const std::int64_t tables,
             number(from,
                    "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
                    " AND tablename IN ('gopg_migrations', 'runs', 'trials_v2', 'checkpoints_v2')"));
  if (tables < 4)
    return fail(Code::kFailedPrecondition,
                "the source is not a database of Determined AI 0.38: it lacks tables");
  TRY_ASSIGN(const std::int64_t version,
             number(from, "SELECT coalesce(max(version), 0) FROM gopg_migrations"));
  if (version == kSchema038) return {};
  return fail(Code::kFailedPrecondition, "the source has schema version " + std::to_string(version) +
                                             ", and 0.38 has " + std::to_string(kSchema038) +
                                             "; bring the old cluster to release 0.38 first");
}

Status check_target(db::Connection& to) {
  TRY_ASSIGN(const std::int64_t used,
             number(to,
                    "SELECT (SELECT count(*) FROM experiments) + (SELECT count(*) FROM models)"
                    " + (SELECT count(*) FROM commands) + greatest((SELECT count(*) FROM users) - 1, 0)"
                    " + greatest((SELECT count(*) FROM workspaces) - 1, 0)"));
  if (used == 0) return {};
  return fail(
      Code::kFailedPrecondition,
      "this cluster is in use: it has users, workspaces, experiments, commands or models; import into a"
      " new one");
}

Result<std::int64_t> copy(db::Connection& from, db::Connection& to, const TableCopy& one,
                          const ImportOptions& options) {
  const std::string out = "COPY (" + std::string(one.select) + ") TO STDOUT";
  const std::string in = "COPY " + std::string(one.table) + " (" + one.columns + ") FROM STDIN";
  auto rows = to.copy_from(from, out, in, [&](std::int64_t so_far) {
    if (options.progress) options.progress(one.what, so_far);
  });
  if (!rows) return fail(rows.error().code, std::string(one.what) + ": " + rows.error().message);
  if (one.then) TRY(to.script(one.then));
  return rows;
}

/// Sentences about what is not as it was.
Result<std::vector<std::string>> notes(db::Connection& from) {
  struct Note {
    const char* count;
    const char* text;
  };
  static constexpr Note kNotes[] = {
      {"SELECT count(*) FROM experiments WHERE state NOT IN ('COMPLETED', 'CANCELED', 'ERROR')",
       "experiments had not ended and are canceled; fork them to go on from their checkpoints"},
      {"SELECT count(*) FROM users WHERE coalesce(password_hash, '') IN ('', '*') AND id > 1 AND active",
       "users have no password: set one with `det user change-password NAME`"},
      {"SELECT count(*) FROM role_assignments WHERE role_id IN (8, 9, 10)",
       "assignments are of roles that do not exist here: EditorProjectRestricted and GenAIUser became Viewer,"
       " TokenCreator nothing"},
      {"SELECT count(*) FROM webhook_triggers", "webhook triggers are not imported"},
      {"SELECT count(*) FROM task_config_policies", "config policies are not imported"},
      {"SELECT count(*) FROM tasks WHERE task_type IN ('NOTEBOOK', 'SHELL', 'COMMAND', 'TENSORBOARD', "
       "'GENERIC')",
       "notebooks, shells, commands, TensorBoards and generic tasks are not imported"},
  };
  std::vector<std::string> all;
  for (const Note& note : kNotes) {
    TRY_ASSIGN(const std::int64_t count, number(from, note.count));
    if (count > 0) all.push_back(std::to_string(count) + " " + note.text);
  }
  return all;
}

Result<ImportReport> copy_all(db::Connection& from, db::Connection& to, const ImportOptions& options) {
  ImportReport report;
  TRY(
      from.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL timezone = 'UTC';"
                  " SET LOCAL jit = off; SET LOCAL work_mem = '256MB'"));
  TRY(
      to.script("BEGIN; SET LOCAL timezone = 'UTC'; SET LOCAL work_mem = '256MB';"
                " SET LOCAL maintenance_work_mem = '512MB'"));
  TRY(to.script(kBeforeCopies));
  for (const TableCopy& one : table_copies()) {
    if (one.logs && !options.logs) continue;
    TRY_ASSIGN(const std::int64_t rows, copy(from, to, one, options));
    report.counts.push_back({one.what, rows});
  }
  if (options.progress) options.progress("indexes and summaries", 0);
  TRY(to.script(kAfterCopies));
  TRY_ASSIGN(report.notes, notes(from));
  TRY(to.commit());
  return report;
}

/// Packs long series, which makes their first chart as fast as later ones.
Status pack_series(db::Connection& to, const ImportOptions& options) {
  TRY_ASSIGN(const db::Rows rows,
             to.query("SELECT trial_id, grp FROM metrics WHERE NOT archived GROUP BY 1, 2"
                      " HAVING count(*) >= $1",
                      db::kChunkRows));
  std::int64_t done = 0;
  for (db::Rows::Row row : rows) {
    const TrialId trial(row.next<std::int64_t>());
    TRY(db::pack_group(to, trial, row.next<std::string>()));
    if (options.progress) options.progress("packed series", ++done);
  }
  return {};
}

}  // namespace

Result<ImportReport> import_determined(db::Connection& from, db::Connection& to,
                                       const ImportOptions& options) {
  TRY(check_source(from));
  TRY(check_target(to));
  auto report = copy_all(from, to, options);
  from.rollback();
  if (!report) {
    to.rollback();
    return report;
  }
  TRY(pack_series(to, options));
  return report;
}

}  // namespace det::import
