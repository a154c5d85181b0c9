#include "master/db/series/metric_chunk.h"

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace det::db {
namespace {

/// SAX handler behind each_number(): only depth 1 counts.
struct Numbers final : nlohmann::json_sax<nlohmann::json> {
  explicit Numbers(const std::function<void(const std::string&, double)>& f) : found(f) {}
  const std::function<void(const std::string&, double)>& found;
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
    // JSON has no literals for these; they are reported as strings.
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

static_assert(std::is_trivially_copyable_v<SeriesPoint> && sizeof(SeriesPoint) == 24);

/// Fixed-size record in front of the name and points of each metric.
struct Head {
  std::uint64_t name_bytes = 0, points = 0;
  std::int64_t count = 0;
  double min = 0, max = 0, sum = 0, last = 0;
  std::uint64_t has_finite = 0;
};

void pack(const std::string& name, const MetricColumn& column, const std::vector<SeriesPoint>& points,
          std::string& out) {
  const MetricSummary& summary = column.summary();
  const Head head{name.size(), points.size(), summary.count, summary.min,
                  summary.max, summary.sum,   summary.last,  column.has_finite()};
  out.append(reinterpret_cast<const char*>(&head), sizeof head);
  out += name;
  out.append(reinterpret_cast<const char*>(points.data()), points.size() * sizeof(SeriesPoint));
}

Status unpack(
    std::string_view bytes,
    const std::function<void(const std::string&, const Head&, const std::vector<SeriesPoint>&)>& found) {
  while (!bytes.empty()) {
    Head head;
    if (bytes.size() < sizeof head) return fail(Code::kDataLoss, "a packed series ends in its head");
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes.remove_prefix(sizeof head);
    // The division avoids an overflow of head.points * sizeof(SeriesPoint) on corrupt input.
    if (head.name_bytes > bytes.size() ||
        head.points > (bytes.size() - head.name_bytes) / sizeof(SeriesPoint))
      return fail(Code::kDataLoss, "a packed series ends before its points");
    const std::string name(bytes.substr(0, head.name_bytes));
    bytes.remove_prefix(head.name_bytes);
    std::vector<SeriesPoint> points(head.points);
    std::memcpy(points.data(), bytes.data(), head.points * sizeof(SeriesPoint));
    bytes.remove_prefix(head.points * sizeof(SeriesPoint));
    found(name, head, points);
  }
  return {};
}

/// Up to one chunk of rows beyond a step. `first` and `last` are steps.
struct Read {
  MetricColumns columns;
  std::int64_t rows = 0, first = 0, last = 0;
};
Result<Read> read_chunk(Connection& connection, TrialId trial, const std::string& group, std::int64_t steps) {
  // A short read means that the chunk is not full yet.
  TRY_ASSIGN(const Rows rows,
             connection.query(
                 "SELECT steps_completed, reported, metrics FROM metrics WHERE trial_id = $1 AND grp = $2"
                 " AND NOT archived AND steps_completed > $3 ORDER BY steps_completed LIMIT $4",
                 trial, group, steps, kChunkRows));
  Read out;
  SeriesPoint point;
  std::string text;
  for (int i = 0; i < rows.size(); ++i) {
    rows[i].into(point.steps_completed, point.reported, text);
    each_number(text, [&](const std::string& name, double value) {
      point.value = value;
      out.columns[name].append(point);
    });
    if (out.rows++ == 0) out.first = point.steps_completed;
    out.last = point.steps_completed;
  }
  return out;
}

// $1 trial, $2 group: the current run, and the last packed step or -1.
constexpr const char* kPacked =
    "SELECT t.run, coalesce((SELECT max(last_steps) FROM metric_chunks WHERE trial_id = t.id AND grp = $2), "
    "-1)"
    " FROM trials t WHERE t.id = $1";

/// Stores a chunk unless its rows have changed since they were read. Everything that adds, archives or
/// deletes rows or chunks of a trial locks the trial's row, so none of it runs concurrently. Rows are only
/// added or archived: an equal count means the same rows, unless one was archived and another added, which
/// implies another run. `packed` must still be the end of the previous chunk, because a gap between chunks
/// would hide rows from readers.
Status store_chunk(Connection& connection, TrialId trial, const std::string& group, RunNumber run,
                   std::int64_t packed, const Read& read) {
  TRY(connection.begin());
  TRY_ASSIGN(const Rows locked,
             connection.query("SELECT FROM trials WHERE id = $1 AND run = $2 FOR NO KEY UPDATE", trial, run));
  TRY_ASSIGN(const Rows before, connection.query(kPacked, trial, group));
  TRY_ASSIGN(const Rows same,
             connection.query("SELECT count(*) FROM metrics WHERE trial_id = $1 AND grp = $2 AND NOT"
                              " archived AND steps_completed BETWEEN $3 AND $4",
                              trial, group, read.first, read.last));
  RunNumber run_now = 0;
  std::int64_t packed_now = 0;
  if (!before.empty()) before[0].into(run_now, packed_now);
  // Changed meanwhile: later rows schedule packing again.
  if (locked.empty() || packed_now != packed || same[0].next<std::int64_t>() != read.rows) {
    connection.rollback();
    return {};
  }
  const std::string outline = pack_extremes(read.columns, kOutlineOf),
                    extremes = pack_extremes(read.columns, kExtremesOf), points = pack_points(read.columns);
  TRY(connection.query(
      "INSERT INTO metric_chunks (trial_id, grp, first_steps, last_steps, outline, extremes, points)"
      " VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
      trial, group, read.first, read.last, Bytes{outline}, Bytes{extremes}, Bytes{points}));
  return connection.commit();
}

}  // namespace

void each_number(const std::string& json, const std::function<void(const std::string&, double)>& found) {
  Numbers numbers(found);
  nlohmann::json::sax_parse(json, &numbers);
}

std::string pack_points(const MetricColumns& columns) {
  std::string out;
  for (const auto& [name, column] : columns) pack(name, column, column.points(), out);
  return out;
}

std::string pack_extremes(const MetricColumns& columns, std::size_t block) {
  std::string out;
  for (const auto& [name, column] : columns) pack(name, column, column.extremes(block), out);
  return out;
}

Status unpack_points(std::string_view bytes, MetricColumns& columns) {
  return unpack(bytes, [&](const std::string& name, const Head&, const std::vector<SeriesPoint>& points) {
    MetricColumn& column = columns[name];
    for (const SeriesPoint& point : points) column.append(point);
  });
}

Status unpack_extremes(std::string_view bytes, MetricColumns& columns) {
  return unpack(bytes,
                [&](const std::string& name, const Head& head, const std::vector<SeriesPoint>& points) {
                  MetricSummary summary;
                  summary.count = head.count;
                  summary.min = head.min;
                  summary.max = head.max;
                  summary.sum = head.sum;
                  summary.last = head.last;
                  columns[name].append_extremes(points, summary, head.has_finite != 0);
                });
}

Status pack_group(Connection& connection, TrialId trial, const std::string& group) {
  for (;;) {
    TRY_ASSIGN(const Rows now, connection.query(kPacked, trial, group));
    if (now.empty()) return {};
    RunNumber run = 0;
    std::int64_t packed = 0;
    now[0].into(run, packed);
    TRY_ASSIGN(const Read read, read_chunk(connection, trial, group, packed));
    if (read.rows < kChunkRows) return {};
    TRY(store_chunk(connection, trial, group, run, packed, read));
    // No chunk means that the rows changed meanwhile; later rows schedule packing again.
    TRY_ASSIGN(const Rows there,
               connection.query("SELECT FROM metric_chunks WHERE trial_id = $1 AND grp = $2 AND"
                                " first_steps = $3",
                                trial, group, read.first));
    if (there.empty()) return {};
  }
}

Status drop_chunks(Connection& connection, TrialId trial, std::int64_t first_steps) {
  TRY(connection.query("DELETE FROM metric_chunks WHERE trial_id = $1 AND last_steps >= $2", trial,
                       first_steps));
  return {};
}

Status forget_chunks(Connection& connection, TrialId trial, const std::string& group) {
  // Same lock as store_chunk(), so that a concurrent packing has either finished or not begun.
  TRY(connection.query("SELECT FROM trials WHERE id = $1 FOR NO KEY UPDATE", trial));
  TRY(connection.query("DELETE FROM metric_chunks WHERE trial_id = $1 AND grp = $2", trial, group));
  return {};
}

}  // namespace det::db
