#include "master/db/series/metric_cache.h"

#include <algorithm>
#include <array>
#include <map>

#include "common/base/queue.h"
#include "master/db/series/metric_group.h"

namespace det::db {
namespace {

constexpr std::size_t kShards = 8;
/// Series of at most this many chunks are read whole on the first zoomed-in query, so that later zooms hit
/// the cache.
constexpr std::int64_t kFewChunks = 8;

}  // namespace

struct MetricCache::Impl {
  // The same group can be cached in several levels of detail.
  struct Key {
    TrialId trial;
    std::string group;
    Detail detail = Detail::kWhole;
    auto operator<=>(const Key&) const = default;
  };
  // LRU of groups. `clock` increases with every use; `points` is the memory in use.
  struct Shard {
    std::map<Key, MetricGroup> groups;
    std::size_t points = 0;
    std::uint64_t clock = 0;
  };

  Impl(Pool& p, SeriesWriter& w, std::size_t points) : pool(p), writer(w), max_points(points / kShards) {
    for (auto& place : shards) place.try_push(std::make_unique<Shard>());
  }

  /// Returns the current state in the database of every group of these trials, by trial and group.
  Result<std::vector<GroupNow>> find(const std::vector<TrialId>& trials) {
    std::vector<std::int64_t> ids;
    // Read before the rows: a late row that arrives in between is noticed by the next call.
    std::map<TrialId, std::uint64_t> late;
    for (TrialId trial : trials) ids.push_back(trial.value), late[trial] = writer.late_rows(trial);
    // Loose index scan over the groups: a million rows of one group cost one lookup.
    TRY_ASSIGN(
        const Rows rows,
        pool.query(
            "SELECT t.id, t.run, g.grp, g.newest, CASE WHEN g.grp = 'validation' THEN (SELECT count(*) FROM "
            "metrics m"
            " WHERE m.trial_id = t.id AND m.grp = g.grp AND NOT m.archived) ELSE 0 END,"
            " (SELECT count(*) FROM metric_chunks c WHERE c.trial_id = t.id AND c.grp = g.grp)"
            " FROM trials t CROSS JOIN LATERAL ("
            " WITH RECURSIVE hop AS (SELECT min(m.grp) AS grp FROM metrics m WHERE m.trial_id = t.id AND NOT"
            " m.archived UNION ALL SELECT (SELECT min(m.grp) FROM metrics m WHERE m.trial_id = t.id AND NOT"
            " m.archived AND m.grp > hop.grp) FROM hop WHERE hop.grp IS NOT NULL)"
            " SELECT grp, (SELECT m.steps_completed FROM metrics m WHERE m.trial_id = t.id AND m.grp = "
            "hop.grp"
            " AND NOT m.archived ORDER BY m.steps_completed DESC LIMIT 1) AS newest FROM hop WHERE grp IS "
            "NOT NULL) g"
            " WHERE t.id = ANY ($1) ORDER BY t.id, g.grp",
            ids));
    std::vector<GroupNow> out;
    for (Rows::Row row : rows) {
      GroupNow& now = out.emplace_back();
      row.into(now.trial, now.run, now.group, now.newest, now.validations, now.chunks);
      now.late = late[now.trial];
    }
    return out;
  }

  /// Returns the group, brought up to date. The pointer is valid until the next call for this shard.
  Result<const MetricGroup*> get(Shard& shard, const GroupNow& now, Detail detail, const Look& look) {
    MetricGroup& group = shard.groups[{now.trial, now.group, detail}];
    const std::size_t before = group.points;
    const MetricGroup empty{.run = now.run, .late = now.late, .look = look};
    Status status;
    // Anything that may have changed rows below the newest known one discards the cached group.
    if (group.run != now.run || group.late != now.late || (detail == Detail::kStretch && !group.covers(look)))
      group = empty;
    if (group.newest != now.newest && group.grows()) status = extend(pool, now, detail, group);
    // A validation was inserted below the newest one: read the group again.
    if (status && group.rows < now.validations) {
      group = empty;
      status = extend(pool, now, detail, group);
    }
    // Rows written before chunks existed, or by another path, are not packed yet.
    if (group.rows >= (now.chunks + 2) * kChunkRows && now.group != "validation")
      writer.pack(now.trial, now.group);
    group.used = ++shard.clock;
    shard.points += group.points - before;
    if (!status) return tl::unexpected(status.error());
    while (shard.points > max_points && shard.groups.size() > 1) {
      const auto oldest =
          std::min_element(shard.groups.begin(), shard.groups.end(),
                           [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
      shard.points -= oldest->second.points;
      shard.groups.erase(oldest);
    }
    return &group;
  }

  /// Picks the least detail that answers the query. A group that is cached whole is used as it is.
  static Detail detail_of(const Shard& shard, const GroupNow& now, const Look& look) {
    const auto whole = shard.groups.find({now.trial, now.group, Detail::kWhole});
    if (whole != shard.groups.end() && whole->second.run == now.run && whole->second.late == now.late)
      return Detail::kWhole;
    if (look.first <= 0 && look.last >= now.newest)
      return now.chunks >= look.fewest_of_outline() ? Detail::kOutline
             : now.chunks >= look.fewest_chunks     ? Detail::kExtremes
                                                    : Detail::kWhole;
    return now.chunks > kFewChunks ? Detail::kStretch : Detail::kWhole;
  }

  /// Calls `work` with each group, in order of trial and group.
  Status visit(const std::vector<TrialId>& trials, const Look& look,
               const std::function<void(const GroupNow&, const MetricGroup&)>& work) {
    TRY_ASSIGN(const auto found, find(trials));
    for (const GroupNow& now : found) {
      auto& place = shards[static_cast<std::size_t>(now.trial.value) % kShards];
      // Taking the shard out of its queue locks it.
      std::optional<std::unique_ptr<Shard>> shard = place.pop();
      const auto group = get(**shard, now, detail_of(**shard, now, look), look);
      if (group) work(now, **group);
      place.try_push(std::move(*shard));
      if (!group) return tl::unexpected(group.error());
    }
    return {};
  }

  Pool& pool;
  SeriesWriter& writer;
  const std::size_t max_points;
  /// A reader holds a shard while it reads; a long first read blocks one eighth of the trials.
  std::array<Queue<std::unique_ptr<Shard>>, kShards> shards{
      Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1),
      Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1),
      Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1)};
};

MetricCache::MetricCache(Pool& pool, SeriesWriter& writer, std::size_t max_points)
    : impl_(std::make_unique<Impl>(pool, writer, max_points)) {}
MetricCache::~MetricCache() = default;

Result<std::vector<Series>> MetricCache::series(const SeriesRequest& request) {
  const auto most = static_cast<std::size_t>(std::clamp(request.max_datapoints, 2, 100'000));
  std::map<TrialId, std::vector<Series>> by_trial;
  // With fewer blocks a bucket than this, extremes would distort the buckets: read every point.
  constexpr std::size_t kBlocks = kChunkRows / kExtremesOf, kBlocksOfBucket = 4;
  const Look look{.first = request.first_steps,
                  .last = request.last_steps,
                  .fewest_chunks = static_cast<std::int64_t>(most / 2 * kBlocksOfBucket / kBlocks + 1)};
  TRY(impl_->visit(request.trials, look, [&](const GroupNow& now, const MetricGroup& group) {
    for (const auto& [name, column] : group.columns) {
      if (request.wanted && !request.wanted(now.group, name)) continue;
      auto points = column.reduced(request.first_steps, request.last_steps, most);
      if (!points.empty()) by_trial[now.trial].push_back({now.trial, now.group, name, std::move(points)});
    }
  }));
  std::vector<Series> out;
  for (TrialId trial : request.trials)
    for (Series& one : by_trial[trial]) out.push_back(std::move(one));
  return out;
}

Result<std::vector<MetricSummary>> MetricCache::summaries(TrialId trial) {
  std::vector<MetricSummary> out;
  TRY(impl_->visit({trial}, Look{}, [&](const GroupNow& now, const MetricGroup& group) {
    for (const auto& [name, column] : group.columns) {
      MetricSummary& summary = out.emplace_back(column.summary());
      summary.group = now.group;
      summary.name = name;
    }
  }));
  return out;
}

}  // namespace det::db
