// Cached series must equal the rows: whole, reduced, extended, rolled back, and with late rows.
#include "master/db/series/metric_cache.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <thread>

#include "common/base/queue.h"
#include "common/base/random.h"
#include "master/db/series/metric_chunk.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det::test {
namespace {

/// Experiment 1 with trials 1 and 2, which have no rows yet.
struct MetricWorld {
  Database database;
  RunningStore store{open_store(database)};
  db::Pool pool{database.connect()};
  db::BulkWriter bulk{{.connect = database.connect()}};
  db::MetricCache cache{pool, bulk};

  MetricWorld() {
    store.write({core::PutExperiment{plain_experiment(), true}, core::PutTrial{plain_trial(1)},
                 core::PutTrial{plain_trial(2)}});
  }
  void train(std::int64_t steps, const std::string& metrics, RunNumber run = 1) {
    Queue<Status> answers(1);
    bulk.push(
        db::MetricBatch{TrialId(1), run, {{"training", steps, metrics, WallTime{steps}}}, [&](Status status) {
                          answers.push(std::move(status));
                        }});
    REQUIRE(answers.pop()->has_value());
  }
  void validate(std::int64_t steps) {
    store.write({core::InsertValidation{TrialId(1), 1, steps, R"({"accuracy":0.5})", 0.5, WallTime{steps}}});
  }
  std::string show(const db::SeriesRequest& request = {.trials = {TrialId(1)}}) {
    const auto series = cache.series(request);
    if (!series) FAIL(series.error().message);
    std::string text;
    for (const db::Series& one : *series) {
      text += one.group + "." + one.name;
      for (const db::SeriesPoint& point : one.points) text += " " + std::to_string(point.steps_completed);
      text += "; ";
    }
    return text;
  }
};

}  // namespace

TEST_CASE("a cached series grows by the rows stored since the last read") {
  MetricWorld world;
  CHECK(world.show().empty());
  world.train(10, R"({"loss":2,"lr":0.1,"note":"text","deep":{"loss":1},"list":[1]})");
  CHECK(world.show() == "training.loss 10; training.lr 10; ");
  world.train(20, R"({"loss":1})");
  world.validate(20);
  CHECK(world.show() == "training.loss 10 20; training.lr 10; validation.accuracy 20; ");
  CHECK(world.show({.trials = {TrialId(1)}, .first_steps = 11, .last_steps = 20}) ==
        "training.loss 20; validation.accuracy 20; ");
  CHECK(world.show({.trials = {TrialId(2), TrialId(7)}}).empty());
  const auto lr = [](const std::string& group, const std::string& name) {
    return group == "training" && name == "lr";
  };
  CHECK(world.show({.trials = {TrialId(1)}, .wanted = lr}) == "training.lr 10; ");
}

TEST_CASE("late rows of both writers are found") {
  MetricWorld world;
  world.train(20, R"({"loss":1})");
  world.validate(40);
  CHECK(world.show() == "training.loss 20; validation.accuracy 40; ");
  world.train(10, R"({"loss":2})");
  world.validate(30);
  CHECK(world.show() == "training.loss 10 20; validation.accuracy 30 40; ");
  world.train(5, R"({"loss":2})");
  world.train(30, R"({"loss":2})");
  CHECK(world.show() == "training.loss 5 10 20 30; validation.accuracy 30 40; ");
  world.train(30, R"({"loss":3,"added":1})");
  CHECK(world.show() == "training.added 30; training.loss 5 10 20 30; validation.accuracy 30 40; ");
}

TEST_CASE("rows archived by a rollback are in no series") {
  MetricWorld world;
  for (std::int64_t steps : {10, 20, 30}) world.train(steps, R"({"loss":1})");
  CHECK(world.show() == "training.loss 10 20 30; ");
  world.store.write({core::PutTrial{plain_trial(1, 1, 2)}, core::ArchiveMetrics{TrialId(1), 10}});
  CHECK(world.show() == "training.loss 10; ");
  world.train(30, R"({"loss":1})", 2);
  CHECK(world.show() == "training.loss 10 30; ");
}

TEST_CASE("memory is bounded, and evicted series are read again") {
  MetricWorld world;
  REQUIRE(world.database.connection().query(
      "INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics) SELECT 1, 1, 'group' || "
      "g, s,"
      " now(), '{\"a\":1,\"b\":2}' FROM generate_series(1, 100) s, generate_series(1, 5) g"));
  db::MetricCache small(world.pool, world.bulk, 8);
  for (int i = 0; i < 3; ++i) {
    const auto series = small.series({.trials = {TrialId(1)}});
    REQUIRE(series->size() == 10);
    for (const db::Series& one : *series) CHECK(one.points.size() == 100);
  }
}

TEST_CASE("summaries match the visible rows and ignore NaN") {
  MetricWorld world;
  world.train(100, R"({"loss":2})");
  world.train(200, R"({"loss":4,"lr":0.1})");
  world.train(300, R"({"loss":"NaN","note":"text"})");
  const auto summaries = world.cache.summaries(TrialId(1));
  if (!summaries) FAIL(summaries.error().message);
  REQUIRE(summaries->size() == 2);
  const db::MetricSummary& loss = (*summaries)[0];
  CHECK(loss.group == "training");
  CHECK(loss.name == "loss");
  CHECK(loss.count == 3);
  CHECK(loss.min == 2);
  CHECK(loss.max == 4);
  CHECK(loss.sum == 6);
  CHECK(std::isnan(loss.last));
  CHECK((*summaries)[1].last == 0.1);
}

TEST_CASE("a reduced series has the smallest and the largest point of every bucket") {
  Random random{7};
  for (int round = 0; round < 200; ++round) {
    db::MetricColumn column;
    std::vector<db::SeriesPoint> points;
    std::int64_t steps = 0;
    const auto count = 1 + random.below(2000);
    for (std::uint64_t i = 0; i < count; ++i) {
      steps += 1 + static_cast<std::int64_t>(random.below(5));
      const double value = random.below(20) == 0 ? std::nan("") : static_cast<double>(random.below(1000));
      points.push_back({steps, value, WallTime{steps}});
      column.append(points.back());
    }
    const auto first = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(steps) + 1));
    const std::int64_t last =
        first + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(steps) + 1));
    const std::size_t most = 2 + random.below(300);
    const auto reduced = column.reduced(first, last, most);
    std::erase_if(points,
                  [&](const auto& p) { return p.steps_completed < first || p.steps_completed > last; });
    REQUIRE(reduced.size() <= std::max(most, std::size_t{2}));
    if (points.size() <= most) {
      REQUIRE(reduced.size() == points.size());
      continue;
    }
    // Reference implementation: put each point into its bucket.
    const double span =
        static_cast<double>(points.back().steps_completed - points.front().steps_completed) + 1;
    const auto buckets = static_cast<double>(most / 2);
    std::map<std::int64_t, std::pair<double, double>> wanted, found;
    const auto fill = [&](const std::vector<db::SeriesPoint>& from, auto& into) {
      for (const db::SeriesPoint& p : from) {
        if (std::isnan(p.value)) continue;
        const auto bucket = static_cast<std::int64_t>(std::floor(
            static_cast<double>(p.steps_completed - points.front().steps_completed) * buckets / span));
        const auto at = into.try_emplace(bucket, p.value, p.value).first;
        at->second = {std::min(at->second.first, p.value), std::max(at->second.second, p.value)};
      }
    };
    fill(points, wanted);
    fill(reduced, found);
    REQUIRE(found == wanted);
  }
}

TEST_CASE("a column is restored from points exactly, and from extremes with the same extremes and summary") {
  Random random{11};
  db::MetricColumns columns, points, extremes;
  std::int64_t steps = 0;
  for (int i = 0; i < 20'000; ++i) {
    steps += 1 + static_cast<std::int64_t>(random.below(3));
    const double value = random.below(50) == 0 ? std::nan("") : static_cast<double>(random.below(1'000'000));
    columns["often"].append({steps, value, WallTime{i}});
    if (i % 100 == 0) columns["rare"].append({steps, value, WallTime{i}});
    if (i == 7) columns["once"].append({steps, 3, WallTime{i}});
    if (i > 10'000) columns["never a number"].append({steps, std::nan(""), WallTime{i}});
  }
  REQUIRE(db::unpack_points(db::pack_points(columns), points));
  const std::size_t block = GENERATE(db::kExtremesOf, db::kOutlineOf);
  REQUIRE(db::unpack_extremes(db::pack_extremes(columns, block), extremes));
  for (const auto& [name, column] : columns) {
    INFO(name);
    for (const db::MetricColumn& other : {points[name], extremes[name]}) {
      CHECK(other.summary().count == column.summary().count);
      CHECK((other.summary().min == column.summary().min && other.summary().max == column.summary().max));
      CHECK((other.summary().sum == column.summary().sum && other.has_finite() == column.has_finite()));
    }
    CHECK(points[name].size() == column.size());
  }
  CHECK(extremes["rare"].reduced(0, INT64_MAX, 1000).size() == 200);
  CHECK(extremes["once"].reduced(0, INT64_MAX, 1000).size() == 1);
  CHECK(extremes["never a number"].reduced(0, INT64_MAX, 50).empty());
  // For any buckets, the extremes equal those of the points in the same range.
  const auto all = columns["often"].reduced(0, INT64_MAX, 100'000);
  const auto blocks = columns["often"].extremes(block);
  REQUIRE(extremes["often"].size() == blocks.size());
  const auto reduced = extremes["often"].reduced(0, INT64_MAX, 40);
  CHECK(reduced.size() == 40);
  const auto peak = [](const auto& from, bool high) {
    double found = high ? -1 : 1e9;
    for (const auto& p : from)
      if (!std::isnan(p.value)) found = high ? std::max(found, p.value) : std::min(found, p.value);
    return found;
  };
  CHECK((peak(reduced, true) == peak(all, true) && peak(reduced, false) == peak(all, false)));
  for (const db::SeriesPoint& point : reduced) {
    const auto same = [&](const auto& other) {
      return other.steps_completed == point.steps_completed && other.value == point.value;
    };
    CHECK(std::any_of(all.begin(), all.end(), same));
  }
  std::string torn = db::pack_points(columns);
  torn.resize(torn.size() - 1);
  db::MetricColumns none;
  CHECK(db::unpack_points(torn, none).error().code == Code::kDataLoss);
}

TEST_CASE("long series are packed on arrival, and packed rows follow rollbacks and late rows") {
  MetricWorld world;
  const auto reported = [](RunNumber run, std::int64_t first, std::int64_t last, db::BulkWriter& bulk) {
    Queue<Status> answers(1);
    db::MetricBatch batch{TrialId(1), run, {}, [&](Status status) { answers.push(std::move(status)); }};
    for (std::int64_t steps = first; steps <= last; ++steps) {
      const double loss = steps == 20'000 ? 77 : steps == 30'001 ? -5 : static_cast<double>(steps % 10);
      batch.rows.push_back({"training", steps, R"({"loss":)" + std::to_string(loss) + "}", WallTime{steps}});
    }
    bulk.push(std::move(batch));
    REQUIRE(answers.pop()->has_value());
  };
  const auto packed = [&] { return world.database.number("SELECT count(*) FROM metric_chunks"); };
  // A master that has just started, with an empty cache.
  const auto seen = [&](db::BulkWriter& bulk, int most) {
    db::MetricCache fresh(world.pool, bulk);
    const auto series = fresh.series({.trials = {TrialId(1)}, .max_datapoints = most});
    if (!series) FAIL(series.error().message);
    REQUIRE(series->size() == 1);
    double low = 1e9, high = -1e9;
    for (const db::SeriesPoint& point : series->front().points) {
      low = std::min(low, point.value);
      high = std::max(high, point.value);
    }
    REQUIRE(series->front().points.size() <= static_cast<std::size_t>(most));
    const auto summaries = fresh.summaries(TrialId(1));
    REQUIRE((summaries && summaries->front().min == low && summaries->front().max == high));
    return std::pair(summaries->front().count, std::pair(low, high));
  };
  using Seen = std::pair<std::int64_t, std::pair<double, double>>;
  for (std::int64_t first = 2; first < 40'000; first += 8'000) reported(1, first, first + 7'999, world.bulk);
  world.bulk.stop();  // Packs the requested groups.
  CHECK(packed() == 2);
  db::BulkWriter second({.connect = world.database.connect()});
  CHECK(seen(second, 200) == Seen{40'000, {-5, 77}});
  CHECK(seen(second, 2'000) == Seen{40'000, {-5, 77}});
  reported(1, 1, 1, second);
  CHECK(packed() == 0);
  CHECK(seen(second, 200) == Seen{40'001, {-5, 77}});
  second.stop();  // The reader requested the groups that were not packed.
  CHECK(packed() == 2);
  db::BulkWriter third({.connect = world.database.connect()});
  CHECK(seen(third, 200) == Seen{40'001, {-5, 77}});
  world.store.write({core::PutTrial{plain_trial(1, 1, 2)}, core::ArchiveMetrics{TrialId(1), 25'000}});
  CHECK(packed() == 1);
  CHECK(seen(third, 200) == Seen{25'000, {0, 77}});
  reported(2, 25'001, 25'010, third);
  CHECK(seen(third, 200) == Seen{25'010, {0, 77}});
}

TEST_CASE("a series whose packed chunks are damaged is read from the rows and packed again") {
  MetricWorld world;
  const auto insert = [&](std::int64_t first, std::int64_t last) {
    REQUIRE(world.database.connection().query(
        "INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics) SELECT 1, 1, "
        "'training', s, now(),"
        " json_build_object('loss', s) FROM generate_series($1::bigint, $2::bigint) s",
        first, last));
  };
  insert(1, 40'000);
  db::Connection connection = world.database.connection();
  REQUIRE(db::pack_group(connection, TrialId(1), "training"));
  REQUIRE(world.database.number("SELECT count(*) FROM metric_chunks") == 2);
  const char* const damage =
      GENERATE("extremes = substr(extremes, 1, 100)", "points = 'x'", "extremes = 'y', points = 'x'");
  INFO(damage);
  REQUIRE(connection.query(
      ("UPDATE metric_chunks SET " + std::string(damage) + " WHERE first_steps > 1").c_str()));
  for (const int most : {20, 2'000}) {
    db::MetricCache fresh(world.pool, world.bulk);
    for (int again = 0; again < 2; ++again) {
      const auto series = fresh.series({.trials = {TrialId(1)}, .max_datapoints = most});
      if (!series) FAIL(series.error().message);
      REQUIRE(series->size() == 1);
      CHECK(series->front().points.front().value == 1);
      CHECK(series->front().points.back().value == 40'000);
      CHECK(fresh.summaries(TrialId(1))->front().count == 40'000);
    }
  }
  world.bulk.stop();  // Packs the groups that the reader requested.
  CHECK(world.database.number(
            "SELECT count(*) FROM metric_chunks WHERE length(extremes) > 1000 AND length(points) >"
            " 1000") == 2);
}

TEST_CASE("a chart of a whole series reads only the outline of its chunks when that is enough") {
  MetricWorld world;
  REQUIRE(world.database.connection().query(
      "INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics) SELECT 1, 1, 'training', "
      "s, "
      "now(), json_build_object('loss', CASE s WHEN 20001 THEN 77 WHEN 40002 THEN -5 ELSE s % 10 END)"
      " FROM generate_series(1, 4 * $1::bigint + 100) s",
      db::kChunkRows));
  db::Connection connection = world.database.connection();
  REQUIRE(db::pack_group(connection, TrialId(1), "training"));
  // Reading a damaged part drops all chunks, which the last count would show.
  const auto [damage, most] =
      GENERATE(std::pair("extremes = 'x', points = 'x'", 50), std::pair("outline = 'x', points = 'x'", 200));
  INFO(damage);
  REQUIRE(connection.query(("UPDATE metric_chunks SET " + std::string(damage)).c_str()));
  const auto series = world.cache.series({.trials = {TrialId(1)}, .max_datapoints = most});
  if (!series) FAIL(series.error().message);
  REQUIRE(series->size() == 1);
  CHECK(series->front().points.size() <= static_cast<std::size_t>(most));
  const auto has = [&](std::int64_t steps, double value) {
    return std::any_of(series->front().points.begin(), series->front().points.end(),
                       [&](const auto& p) { return p.steps_completed == steps && p.value == value; });
  };
  CHECK((has(20'001, 77) && has(40'002, -5)));
  CHECK(world.database.number("SELECT count(*) FROM metric_chunks") == 4);
}

TEST_CASE("a zoomed series reads only its chunks: extremes in a long middle, points at the ends") {
  MetricWorld world;
  constexpr std::int64_t kChunks = 12, kRows = kChunks * db::kChunkRows + 100;
  // In steps. Every second step has a row.
  constexpr std::int64_t kChunk = 2 * db::kChunkRows;
  REQUIRE(world.database.connection().query(
      "INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics) SELECT 1, 1, 'training', "
      "2 * s, now(),"
      " json_build_object('loss', s * 7919 % 10007) FROM generate_series(1, $1::bigint) s",
      kRows));
  db::Connection connection = world.database.connection();
  REQUIRE(db::pack_group(connection, TrialId(1), "training"));
  REQUIRE(world.database.number("SELECT count(*) FROM metric_chunks") == kChunks);
  // The middle chunks keep only extremes, the fifth only points. Reading a damaged part drops all chunks,
  // which the count below would show.
  REQUIRE(connection.query("UPDATE metric_chunks SET extremes = 'x' WHERE first_steps = 4 * $1::bigint + 2",
                           kChunk));
  REQUIRE(connection.query(
      "UPDATE metric_chunks SET points = 'x' WHERE first_steps > 6 * $1::bigint AND last_steps <= 11"
      " * $1::bigint",
      kChunk));
  const auto value = [](std::int64_t steps) { return static_cast<double>(steps / 2 * 7919 % 10'007); };
  db::MetricCache cache(world.pool, world.bulk);
  const auto look = [&](std::int64_t first, std::int64_t last, int most = 100) {
    const auto series = cache.series(
        {.trials = {TrialId(1)}, .first_steps = first, .last_steps = last, .max_datapoints = most});
    if (!series) FAIL(series.error().message);
    REQUIRE(series->size() == 1);
    return series->front().points;
  };
  struct Case {
    std::int64_t first, last;
    int most;
  };
  for (const Case& of :
       {Case{4 * kChunk + 10, 5 * kChunk - 10, 100}, Case{4 * kChunk + 10, 4 * kChunk + 100, 100},
        Case{5 * kChunk + 34, 11 * kChunk + 66, 100}, Case{5 * kChunk + 34, INT64_MAX, 100},
        Case{12 * kChunk + 2, 2 * kRows, 1'000}}) {
    INFO(of.first << " to " << of.last);
    double low = 1e9, high = -1, found_low = 1e9, found_high = -1;
    std::size_t all = 0;
    for (std::int64_t steps = of.first; steps <= std::min(of.last, 2 * kRows); steps += 2, ++all)
      low = std::min(low, value(steps)), high = std::max(high, value(steps));
    const auto points = look(of.first, of.last, of.most);
    CHECK(points.size() == std::min(static_cast<std::size_t>(of.most), all));
    for (const db::SeriesPoint& point : points) {
      REQUIRE((point.value == value(point.steps_completed) && point.steps_completed >= of.first &&
               point.steps_completed <= of.last));
      found_low = std::min(found_low, point.value), found_high = std::max(found_high, point.value);
    }
    CHECK((found_low == low && found_high == high));
  }
  CHECK(world.database.number("SELECT count(*) FROM metric_chunks") == kChunks);
  // A new row at the end appears in an open range, and a late row appears in a closed one.
  world.train(2 * kRows + 1, R"({"loss":-1})");
  CHECK(look(5 * kChunk + 34, INT64_MAX).back().value == -1);
  CHECK(look(4 * kChunk + 10, 4 * kChunk + 12).size() == 2);
  world.train(4 * kChunk + 11, R"({"loss":-2})");
  CHECK(look(4 * kChunk + 10, 4 * kChunk + 12).size() == 3);
}

TEST_CASE("a chunk is not stored after its predecessor was deleted concurrently") {
  MetricWorld world;
  db::Connection connection = world.database.connection();
  const auto insert = [&](std::int64_t first, std::int64_t last) {
    REQUIRE(
        connection.query("INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics) "
                         "SELECT 1, 1, 'training', s, now(),"
                         " '{\"loss\":1}' FROM generate_series($1::bigint, $2::bigint) s",
                         first, last));
  };
  insert(1, db::kChunkRows);
  REQUIRE(db::pack_group(connection, TrialId(1), "training"));
  insert(db::kChunkRows + 1, 2 * db::kChunkRows);
  REQUIRE(connection.begin());
  REQUIRE(db::forget_chunks(connection, TrialId(1), "training"));
  db::Connection packer = world.database.connection();
  std::thread packing([&] { CHECK(db::pack_group(packer, TrialId(1), "training")); });
  while (world.database.number("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0) {
  }
  REQUIRE(connection.commit());
  packing.join();
  CHECK(world.database.number("SELECT count(*) FROM metric_chunks") == 0);
  REQUIRE(db::pack_group(connection, TrialId(1), "training"));
  CHECK(world.database.number("SELECT count(*) FROM metric_chunks") == 2);
}

}  // namespace det::test
