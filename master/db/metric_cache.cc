#include "master/db/metric_cache.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/log.h"
#include "master/db/metric_chunk.h"

namespace det::db {
namespace {

constexpr std::int64_t kPage = 50'000;
constexpr std::size_t kShards = 8;

/// What the database says about one group of one trial now.
struct Fresh {
  TrialId trial;
  RunNumber run = 0;
  std::string group;
  std::int64_t newest = 0;
  std::int64_t validations = 0;  ///< rows; 0 for other groups
  std::int64_t chunks = 0;
  std::uint64_t late = 0;
};

/// One group of one trial in memory: every point, or of what is packed the extremes only.
struct Group {
  RunNumber run = 0;
  std::uint64_t late = 0;
  std::int64_t newest = INT64_MIN, rows = 0;
  std::size_t points = 0;
  std::uint64_t used = 0;
  Columns columns;
};

Status unpack_chunks(Pool& pool, const Fresh& fresh, bool coarse, Group& group) {
  const char* const sql = coarse ? "SELECT last_steps, extremes FROM metric_chunks WHERE trial_id = $1 AND grp = $2"
                                   " ORDER BY first_steps"
                                 : "SELECT last_steps, points FROM metric_chunks WHERE trial_id = $1 AND grp = $2"
                                   " ORDER BY first_steps";
  TRY_ASSIGN(const Rows rows, pool.query(sql, fresh.trial, fresh.group));
  for (int i = 0; i < rows.size(); ++i) {
    std::string bytes;
    rows[i].into(group.newest, bytes);
    TRY(coarse ? unpack_extremes(bytes, group.columns) : unpack_points(bytes, group.columns));
    group.rows += kChunkRows;
  }
  for (const auto& [name, column] : group.columns) group.points += column.size();
  return {};
}

/// What is packed, into an empty group. What cannot be read goes, and leaves the group empty: the rows say the same, and
/// are packed again.
Status unpack(Pool& pool, const Fresh& fresh, bool coarse, Group& group) {
  const Group empty = group;
  const Status status = unpack_chunks(pool, fresh, coarse, group);
  if (status || status.error().code != Code::kDataLoss) return status;
  group = empty;
  log::warn("packed metrics cannot be read: their rows are read instead",
            {{"trial", fresh.trial}, {"group", fresh.group}, {"reason", status.error().message}});
  return pool.in_transaction([&](Connection& connection) { return forget_chunks(connection, fresh.trial, fresh.group); });
}

Status extend(Pool& pool, const Fresh& fresh, bool coarse, Group& group) {
  if (group.rows == 0 && fresh.chunks > 0) TRY(unpack(pool, fresh, coarse, group));
  SeriesPoint point;
  std::string text;
  for (std::int64_t got = kPage; got == kPage;) {
    TRY_ASSIGN(const Rows rows,
               pool.query("SELECT steps_completed, reported, metrics FROM metrics WHERE trial_id = $1 AND grp = $2"
                          " AND NOT archived AND steps_completed > $3 ORDER BY steps_completed LIMIT $4",
                          fresh.trial, fresh.group, group.newest, kPage));
    got = rows.size();
    for (int i = 0; i < rows.size(); ++i) {
      rows[i].into(point.steps_completed, point.reported, text);
      each_number(text, [&](const std::string& name, double value) {
        point.value = value;
        group.columns[name].append(point);
        ++group.points;
      });
      group.newest = point.steps_completed;
      ++group.rows;
    }
  }
  return {};
}

}  // namespace

struct MetricCache::Impl {
  struct Key {
    TrialId trial;
    std::string group;
    bool coarse = false;
    auto operator<=>(const Key&) const = default;
  };
  struct Shard {
    std::map<Key, Group> groups;
    std::size_t points = 0;
    std::uint64_t clock = 0;
  };

  Impl(Pool& pool, BulkWriter& bulk, std::size_t most_points)
      : pool(pool), bulk(bulk), most_points(most_points / kShards) {
    for (auto& place : shards) place.try_push(std::make_unique<Shard>());
  }

  /// What there is of these trials now, by trial and group.
  Result<std::vector<Fresh>> look(const std::vector<TrialId>& trials) {
    std::vector<std::int64_t> ids;
    std::map<TrialId, std::uint64_t> late;  // asked before the rows: a row that comes between is found next time
    for (TrialId trial : trials) ids.push_back(trial.value), late[trial] = bulk.late_rows(trial);
    // Groups are found by hopping over the index, so a million rows of one group cost one look-up.
    TRY_ASSIGN(
        const Rows rows,
        pool.query(
            "SELECT t.id, t.run, g.grp, g.newest, CASE WHEN g.grp = 'validation' THEN (SELECT count(*) FROM metrics m"
            " WHERE m.trial_id = t.id AND m.grp = g.grp AND NOT m.archived) ELSE 0 END,"
            " (SELECT count(*) FROM metric_chunks c WHERE c.trial_id = t.id AND c.grp = g.grp)"
            " FROM trials t CROSS JOIN LATERAL ("
            " WITH RECURSIVE hop AS (SELECT min(m.grp) AS grp FROM metrics m WHERE m.trial_id = t.id AND NOT"
            " m.archived UNION ALL SELECT (SELECT min(m.grp) FROM metrics m WHERE m.trial_id = t.id AND NOT"
            " m.archived AND m.grp > hop.grp) FROM hop WHERE hop.grp IS NOT NULL)"
            " SELECT grp, (SELECT m.steps_completed FROM metrics m WHERE m.trial_id = t.id AND m.grp = hop.grp"
            " AND NOT m.archived ORDER BY m.steps_completed DESC LIMIT 1) AS newest FROM hop WHERE grp IS NOT NULL) g"
            " WHERE t.id = ANY ($1) ORDER BY t.id, g.grp",
            ids));
    std::vector<Fresh> out;
    for (int i = 0; i < rows.size(); ++i) {
      Fresh& fresh = out.emplace_back();
      rows[i].into(fresh.trial, fresh.run, fresh.group, fresh.newest, fresh.validations, fresh.chunks);
      fresh.late = late[fresh.trial];
    }
    return out;
  }

  /// The group as it is now; valid until the next call for this shard.
  Result<const Group*> get(Shard& shard, const Fresh& fresh, bool coarse) {
    Group& group = shard.groups[{fresh.trial, fresh.group, coarse}];
    const std::size_t before = group.points;
    Status status;
    if (group.run != fresh.run || group.late != fresh.late) group = {.run = fresh.run, .late = fresh.late};
    if (group.newest != fresh.newest) status = extend(pool, fresh, coarse, group);
    if (status && group.rows < fresh.validations) {
      group = {.run = fresh.run, .late = fresh.late};
      status = extend(pool, fresh, coarse, group);
    }
    // Rows from before they were packed, or that came by another way.
    if (group.rows >= (fresh.chunks + 2) * kChunkRows && fresh.group != "validation") bulk.pack(fresh.trial, fresh.group);
    group.used = ++shard.clock;
    shard.points += group.points - before;
    if (!status) return tl::unexpected(status.error());
    while (shard.points > most_points && shard.groups.size() > 1) {
      const auto oldest = std::min_element(shard.groups.begin(), shard.groups.end(), [](const auto& a, const auto& b) {
        return a.second.used < b.second.used;
      });
      shard.points -= oldest->second.points;
      shard.groups.erase(oldest);
    }
    return &group;
  }

  /// `work` sees each group, in order of trial and group. Extremes are enough for all that has `fewest_chunks` chunks and
  /// more, and no steps beyond those of `request`.
  Status visit(const SeriesRequest& request, std::int64_t fewest_chunks,
               const std::function<void(const Fresh&, const Group&)>& work) {
    TRY_ASSIGN(const auto found, look(request.trials));
    for (const Fresh& fresh : found) {
      auto& place = shards[static_cast<std::size_t>(fresh.trial.value) % kShards];
      std::optional<std::unique_ptr<Shard>> shard = place.pop();
      const bool whole = request.first_steps <= 0 && request.last_steps >= fresh.newest;
      const bool coarse =
          whole && fresh.chunks >= fewest_chunks && !(*shard)->groups.contains({fresh.trial, fresh.group, false});
      const auto group = get(**shard, fresh, coarse);
      if (group) work(fresh, **group);
      place.try_push(std::move(*shard));
      if (!group) return tl::unexpected(group.error());
    }
    return {};
  }

  Pool& pool;
  BulkWriter& bulk;
  const std::size_t most_points;
  /// A reader takes a shard out while it reads; a long first read holds up an eighth of the trials.
  std::array<Queue<std::unique_ptr<Shard>>, kShards> shards{
      Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1),
      Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1),
      Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1)};
};

MetricCache::MetricCache(Pool& pool, BulkWriter& bulk, std::size_t most_points)
    : impl_(std::make_unique<Impl>(pool, bulk, most_points)) {}
MetricCache::~MetricCache() = default;

Result<std::vector<Series>> MetricCache::series(const SeriesRequest& request) {
  const auto most = static_cast<std::size_t>(std::clamp(request.max_datapoints, 2, 100'000));
  std::map<TrialId, std::vector<Series>> by_trial;
  constexpr std::size_t kBlocks = kChunkRows / kExtremesOf, kBlocksOfBucket = 4;
  const auto fewest_chunks = static_cast<std::int64_t>(most / 2 * kBlocksOfBucket / kBlocks + 1);
  TRY(impl_->visit(request, fewest_chunks, [&](const Fresh& fresh, const Group& group) {
    for (const auto& [name, column] : group.columns) {
      if (request.wanted && !request.wanted(fresh.group, name)) continue;
      auto points = column.reduced(request.first_steps, request.last_steps, most);
      if (!points.empty())
        by_trial[fresh.trial].push_back({fresh.trial, fresh.group, name, std::move(points)});
    }
  }));
  std::vector<Series> out;
  for (TrialId trial : request.trials)
    for (Series& one : by_trial[trial])
      out.push_back(std::move(one));
  return out;
}

Result<std::vector<MetricSummary>> MetricCache::summaries(TrialId trial) {
  std::vector<MetricSummary> out;
  TRY(impl_->visit({.trials = {trial}}, 1, [&](const Fresh& fresh, const Group& group) {
    for (const auto& [name, column] : group.columns) {
      MetricSummary& summary = out.emplace_back(column.summary());
      summary.group = fresh.group;
      summary.name = name;
    }
  }));
  return out;
}

}  // namespace det::db
