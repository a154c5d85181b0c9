#include "master/db/queries/media.h"

namespace det::db {
namespace {

const Columns<MediaRow>& media_columns() {
  using M = MediaRow;
  static const Columns<M> columns(
      column<&M::trial>("trial_id"), column<&M::name>("name"), column<&M::steps_completed>("steps_completed"),
      column<&M::kind>("kind"), column<&M::caption>("caption"), column<&M::digest>("digest"),
      column<&M::size>("size"), column<&M::file_name>("file_name"), column<&M::reported>("reported"));
  return columns;
}

std::vector<std::int64_t> numbers(const std::vector<TrialId>& trials) {
  std::vector<std::int64_t> out;
  for (const TrialId trial : trials) out.push_back(trial.value);
  return out;
}

}  // namespace

Status put_media(Pool& pool, const MediaRow& row, const MediaUsage& quota, const MediaContents& contents) {
  return pool.in_transaction([&](Connection& connection) -> Status {
    // Without the lock a content could be deleted that a concurrent report has just used.
    TRY(connection.query("SELECT pg_advisory_xact_lock(hashtext('media'), $1::bigint::integer)", row.trial));
    TRY_ASSIGN(
        const Rows used,
        connection.query("SELECT count(*), coalesce(sum(size), 0)::bigint FROM media WHERE trial_id = $1"
                         " AND NOT (name = $2 AND steps_completed = $3)",
                         row.trial, row.name, row.steps_completed));
    MediaUsage usage;
    used[0].into(usage.entries, usage.bytes);
    if (usage.entries >= quota.entries || usage.bytes + row.size > quota.bytes)
      return fail(Code::kResourceExhausted, "media of trial " + std::to_string(row.trial.value) +
                                                ": the quota of " + std::to_string(quota.entries) +
                                                " entries and " + std::to_string(quota.bytes >> 20) +
                                                " MiB is used; report less often");
    TRY(contents.write());
    TRY_ASSIGN(const Rows before,
               connection.query("SELECT digest FROM media WHERE trial_id = $1 AND name = $2"
                                " AND steps_completed = $3",
                                row.trial, row.name, row.steps_completed));
    TRY(connection.query(
        "INSERT INTO media (trial_id, name, steps_completed, kind, caption, digest, size, file_name)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (trial_id, name, steps_completed) DO UPDATE"
        " SET kind = excluded.kind, caption = excluded.caption, digest = excluded.digest,"
        " size = excluded.size, file_name = excluded.file_name, reported = now()",
        row.trial, row.name, row.steps_completed, row.kind, row.caption, row.digest, row.size,
        row.file_name));
    const std::string old = before.empty() ? row.digest : before[0].next<std::string>();
    if (old == row.digest) return {};
    TRY_ASSIGN(
        const Rows others,
        connection.query("SELECT 1 FROM media WHERE trial_id = $1 AND digest = $2 LIMIT 1", row.trial, old));
    if (others.empty()) contents.remove(old);
    return {};
  });
}

Result<Page<MediaRow>> list_media(Pool& pool, const std::vector<TrialId>& trials, const Window& window) {
  static const std::string where = " FROM media WHERE trial_id = ANY ($1)";
  static const std::string sql =
      media_columns().select(where + " ORDER BY trial_id, name, steps_completed OFFSET $2 LIMIT $3");
  return page_of(pool, "SELECT count(*)" + where, sql, Params(numbers(trials)), window, media_columns());
}

Result<MediaRow> find_media(Pool& pool, TrialId trial, const std::string& digest) {
  static const std::string sql = media_columns().select(
      " FROM media WHERE trial_id = $1 AND digest = $2 ORDER BY steps_completed DESC, name LIMIT 1");
  return media_columns().one(pool.query(sql, trial, digest),
                             "media " + digest.substr(0, 64) + " of trial " + std::to_string(trial.value));
}

Result<std::optional<MediaRow>> find_media_named(Pool& pool, TrialId trial, const std::string& name) {
  static const std::string sql = media_columns().select(
      " FROM media WHERE trial_id = $1 AND name = $2 ORDER BY steps_completed DESC LIMIT 1");
  auto found = media_columns().one(pool.query(sql, trial, name), "media");
  if (found) return std::move(*found);
  if (found.error().code == Code::kNotFound) return std::nullopt;
  return tl::unexpected(found.error());
}

Result<std::vector<MediaContent>> find_contents(Pool& pool, const std::vector<TrialId>& trials,
                                                const std::vector<std::string>& digests) {
  TRY_ASSIGN(const Rows rows,
             pool.query("SELECT t.experiment_id, m.size FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY"
                        " AS w (trial, digest, place) JOIN trials t ON t.id = w.trial CROSS JOIN LATERAL"
                        " (SELECT size FROM media WHERE trial_id = w.trial AND digest = w.digest LIMIT 1) m"
                        " ORDER BY w.place",
                        numbers(trials), digests));
  if (static_cast<std::size_t>(rows.size()) != digests.size())
    return fail(Code::kNotFound, "a trial of the request has no media with this digest");
  std::vector<MediaContent> out;
  for (Rows::Row row : rows) {
    MediaContent& content = out.emplace_back();
    row.into(content.experiment, content.size);
  }
  return out;
}

Result<ExperimentId> experiment_of_trial(Pool& pool, TrialId trial) {
  return value_of<ExperimentId>(pool.query("SELECT experiment_id FROM trials WHERE id = $1", trial),
                                "trial " + std::to_string(trial.value));
}

Result<bool> has_media(Pool& pool, ExperimentId experiment) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT EXISTS (SELECT FROM media m JOIN trials t ON"
                                         " t.id = m.trial_id WHERE t.experiment_id = $1)",
                                         experiment));
  return rows[0].next<bool>();
}

}  // namespace det::db
