#include "master/db/metric_cache.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "master/db/metric_column.h"

namespace det::db {
namespace {

constexpr std::int64_t kPage = 50'000;
constexpr std::size_t kShards = 8;

/// Calls back with each number of the outermost object, and the strings that stand for numbers.
struct Numbers final : nlohmann::json_sax<nlohmann::json> {
  std::function<void(const std::string&, double)> found;
  std::string name;
  int depth = 0;
  void take(double value) const {
    if (depth == 1) found(name, value);
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return take(static_cast<double>(value)), true; }
  bool number_unsigned(number_unsigned_t value) override { return take(static_cast<double>(value)), true; }
  bool number_float(number_float_t value, const string_t&) override { return take(value), true; }
  bool string(string_t& value) override {
    if (value == "NaN") take(std::numeric_limits<double>::quiet_NaN());
    if (value == "Infinity") take(std::numeric_limits<double>::infinity());
    if (value == "-Infinity") take(-std::numeric_limits<double>::infinity());
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth, true; }
  bool key(string_t& value) override {
    if (depth == 1) name = value;
    return true;
  }
  bool end_object() override { return --depth, true; }
  bool start_array(std::size_t) override { return ++depth, true; }
  bool end_array() override { return --depth, true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
};

/// What the database says about one group of one trial now.
struct Fresh {
  TrialId trial;
  RunNumber run = 0;
  std::string group;
  std::int64_t newest = 0;
  std::int64_t validations = 0;  ///< rows; 0 for other groups
  std::uint64_t late = 0;
};

/// One group of one trial in memory.
struct Group {
  RunNumber run = 0;
  std::uint64_t late = 0;
  std::int64_t newest = INT64_MIN, rows = 0;
  std::size_t points = 0;
  std::uint64_t used = 0;
  std::map<std::string, MetricColumn> columns;
};

Status extend(Pool& pool, const Fresh& fresh, Group& group) {
  Numbers numbers;
  SeriesPoint point;
  numbers.found = [&](const std::string& name, double value) {
    point.value = value;
    group.columns[name].append(point);
    ++group.points;
  };
  for (std::int64_t got = kPage; got == kPage;) {
    TRY_ASSIGN(const Rows rows,
               pool.query("SELECT steps_completed, reported, metrics FROM metrics WHERE trial_id = $1 AND grp = $2"
                          " AND NOT archived AND steps_completed > $3 ORDER BY steps_completed LIMIT $4",
                          fresh.trial, fresh.group, group.newest, kPage));
    got = rows.size();
    for (int i = 0; i < rows.size(); ++i) {
      std::string text;
      rows[i].into(point.steps_completed, point.reported, text);
      numbers.depth = 0;
      nlohmann::json::sax_parse(text, &numbers);
      group.newest = point.steps_completed;
      ++group.rows;
    }
  }
  return {};
}

}  // namespace

struct MetricCache::Impl {
  using Key = std::pair<TrialId, std::string>;
  struct Shard {
    std::map<Key, Group> groups;
    std::size_t points = 0;
    std::uint64_t clock = 0;
  };

  Impl(Pool& pool, const BulkWriter& bulk, std::size_t most_points)
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
            " WHERE m.trial_id = t.id AND m.grp = g.grp AND NOT m.archived) ELSE 0 END"
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
      rows[i].into(fresh.trial, fresh.run, fresh.group, fresh.newest, fresh.validations);
      fresh.late = late[fresh.trial];
    }
    return out;
  }

  /// The group as it is now; valid until the next call for this shard.
  Result<const Group*> get(Shard& shard, const Fresh& fresh) {
    Group& group = shard.groups[{fresh.trial, fresh.group}];
    const std::size_t before = group.points;
    Status status;
    if (group.run != fresh.run || group.late != fresh.late) group = {.run = fresh.run, .late = fresh.late};
    if (group.newest != fresh.newest) status = extend(pool, fresh, group);
    if (status && group.rows < fresh.validations) {
      group = {.run = fresh.run, .late = fresh.late};
      status = extend(pool, fresh, group);
    }
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

  /// `work` sees each group, in order of trial and group.
  Status visit(const std::vector<TrialId>& trials, const std::function<void(const Fresh&, const Group&)>& work) {
    TRY_ASSIGN(const auto found, look(trials));
    for (const Fresh& fresh : found) {
      auto& place = shards[static_cast<std::size_t>(fresh.trial.value) % kShards];
      std::optional<std::unique_ptr<Shard>> shard = place.pop();
      const auto group = get(**shard, fresh);
      if (group) work(fresh, **group);
      place.try_push(std::move(*shard));
      if (!group) return tl::unexpected(group.error());
    }
    return {};
  }

  Pool& pool;
  const BulkWriter& bulk;
  const std::size_t most_points;
  /// A reader takes a shard out while it reads; a long first read holds up an eighth of the trials.
  std::array<Queue<std::unique_ptr<Shard>>, kShards> shards{
      Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1),
      Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1),
      Queue<std::unique_ptr<Shard>>(1), Queue<std::unique_ptr<Shard>>(1)};
};

MetricCache::MetricCache(Pool& pool, const BulkWriter& bulk, std::size_t most_points)
    : impl_(std::make_unique<Impl>(pool, bulk, most_points)) {}
MetricCache::~MetricCache() = default;

Result<std::vector<Series>> MetricCache::series(const SeriesRequest& request) {
  const auto most = static_cast<std::size_t>(std::clamp(request.max_datapoints, 2, 100'000));
  std::map<TrialId, std::vector<Series>> by_trial;
  TRY(impl_->visit(request.trials, [&](const Fresh& fresh, const Group& group) {
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
  TRY(impl_->visit({trial}, [&](const Fresh& fresh, const Group& group) {
    for (const auto& [name, column] : group.columns) {
      MetricSummary& summary = out.emplace_back(column.summary());
      summary.group = fresh.group;
      summary.name = name;
    }
  }));
  return out;
}

}  // namespace det::db
