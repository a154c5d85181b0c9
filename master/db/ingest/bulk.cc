#include "master/db/ingest/bulk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/queue.h"
#include "master/db/ingest/log_policies.h"
#include "master/db/ingest/log_triggers.h"
#include "master/db/ingest/metric_triggers.h"
#include "master/db/store/locks.h"

namespace det::db {
namespace {

/// SAX handler that finds JSON which PostgreSQL cannot store: NUL in strings and keys, and numbers that
/// underflow a double. The same pass recognizes objects that parse_json() would accept, so that most reports
/// are parsed once.
struct Storable final : nlohmann::json_sax<nlohmann::json> {
  std::vector<std::string> names;  ///< Keys of the outermost object.
  bool plain = true;               ///< Flat object without duplicate keys.

  bool null() override { return inside(); }
  bool boolean(bool) override { return inside(); }
  bool number_integer(number_integer_t) override { return inside(); }
  bool number_unsigned(number_unsigned_t) override { return inside(); }
  bool number_float(number_float_t value, const string_t& text) override {
    // A zero with a non-zero digit in its mantissa is an underflow, which PostgreSQL rejects.
    if (value != 0) return inside();
    const std::string_view mantissa = std::string_view(text).substr(0, text.find_first_of("eE"));
    return inside() && mantissa.find_first_of("123456789") == std::string_view::npos;
  }
  bool string(string_t& value) override { return inside() && value.find('\0') == string_t::npos; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (++depth_ > 1) plain = false;
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) {
      // The duplicate check is quadratic; parse_json() takes over at 64 keys.
      plain = plain && names.size() < 64 && std::find(names.begin(), names.end(), value) == names.end();
      if (plain) names.push_back(value);
    }
    return value.find('\0') == string_t::npos;
  }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override { return plain = false, inside(); }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return plain = false;
  }

 private:
  bool inside() const { return depth_ > 0; }
  int depth_ = 0;
};

/// A thread with its own connection that stores all queued batches in one transaction. `write` stores them
/// and fills in one answer per batch; it must be safe to repeat.
template <typename Batch, typename Answer>
class Lane {
 public:
  using Write = std::function<Status(Connection&, const std::vector<Batch>&, std::vector<Answer>&)>;
  Lane(const BulkOptions& options, const char* name, Write write)
      : options_(named(options, name)),
        write_(std::move(write)),
        queue(options.queue),
        thread_([this] { run(); }) {}
  ~Lane() { stop(); }
  void stop() {
    queue.close();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    for (;;) {
      std::vector<Batch> batches = queue.pop_batch(options_.queue, std::chrono::hours(1));
      if (batches.empty() && queue.closed()) return;
      if (!batches.empty()) store(std::move(batches));
    }
  }

  void store(std::vector<Batch> batches) {
    std::vector<Answer> answers(batches.size());
    // An unknown outcome is repeated as well: `write` is idempotent.
    const Status status = attempt_patiently(
        connection_, pause_,
        [&](Duration waited, const Error&) {
          return waited > options_.retry_for || (queue.closed() && waited > std::chrono::seconds(5));
        },
        [&]() -> Status {
          if (!connection_) TRY(connect());
          return write_(*connection_, batches, answers);
        });
    if (!status && batches.size() > 1 && status.error().code != Code::kUnavailable) {
      // One batch is invalid: store each separately, so that the others succeed.
      for (Batch& batch : batches) {
        std::vector<Batch> one;
        one.push_back(std::move(batch));
        store(std::move(one));
      }
      return;
    }
    for (std::size_t i = 0; i < batches.size(); ++i)
      batches[i].done(status ? std::move(answers[i]) : Answer(tl::unexpected(status.error())));
  }

  Status connect() {
    TRY_ASSIGN(connection_, Connection::open(options_.connect));
    // A cached generic plan from the time of few rows would keep using sequential scans.
    return connection_->script("SET plan_cache_mode = force_custom_plan");
  }

  static BulkOptions named(BulkOptions options, const char* name) {
    options.connect.application += std::string(" ") + name;
    return options;
  }
  const BulkOptions options_;
  const Write write_;
  std::optional<Connection> connection_;
  Pause pause_;

 public:
  Queue<Batch> queue;

 private:
  std::thread thread_;
};

/// Counters of late rows. Trials with the same remainder share one.
using LateRows = std::array<std::atomic<std::uint64_t>, 256>;

auto& late_rows_of(auto& late, std::int64_t trial) {
  return late[static_cast<std::size_t>(trial) % late.size()];
}

/// State of a trial when its rows are about to be stored.
struct Standing {
  RunNumber run = 0;
  bool late = false;        ///< Some new rows are at or below stored steps of their group.
  std::int64_t lowest = 0;  ///< Lowest step among the new rows.
};

/// Begins a transaction and share-locks the trial rows until it ends, so that no run can start in between and
/// rows of a superseded run never become visible. Returns the state of each trial.
Result<std::map<TrialId, Standing>> fence(Connection& connection, const std::vector<MetricBatch>& batches) {
  // Lowest new step per (trial, group).
  std::map<std::pair<std::int64_t, std::string_view>, std::int64_t> lowest;
  for (const MetricBatch& batch : batches) {
    for (const MetricRow& row : batch.rows) {
      std::int64_t& steps =
          lowest.try_emplace({batch.trial.value, row.group}, row.steps_completed).first->second;
      steps = std::min(steps, row.steps_completed);
    }
  }
  std::vector<std::int64_t> ids, trials, steps;
  std::vector<std::string> groups;
  for (const MetricBatch& batch : batches) ids.push_back(batch.trial.value);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const auto& [key, first] : lowest) {
    trials.push_back(key.first);
    groups.emplace_back(key.second);
    steps.push_back(first);
  }
  static constexpr const char* kFence =
      "WITH current AS MATERIALIZED (SELECT id, run FROM trials WHERE id = ANY ($1) ORDER BY id FOR SHARE),"
      " late AS (SELECT DISTINCT g.trial FROM unnest($2::bigint[], $3::text[], $4::bigint[]) AS g (trial, "
      "grp, first)"
      " WHERE EXISTS (SELECT FROM metrics m WHERE m.trial_id = g.trial AND m.grp = g.grp AND NOT m.archived"
      " AND m.steps_completed >= g.first))"
      " SELECT id, run, late.trial IS NOT NULL FROM current LEFT JOIN late ON late.trial = id";
  TRY_ASSIGN(const Rows rows,
             connection.run_all({{"BEGIN", Params()}, {kFence, Params(ids, trials, groups, steps)}}));
  std::map<TrialId, Standing> standing;
  for (Rows::Row row : rows) {
    Standing& its = standing[row.next<TrialId>()];
    row.into(its.run, its.late);
    its.lowest = INT64_MAX;
  }
  for (const auto& [key, first] : lowest) {
    const auto its = standing.find(TrialId(key.first));
    if (its != standing.end()) its->second.lowest = std::min(its->second.lowest, first);
  }
  return standing;
}

Status answer_for(const MetricBatch& batch, const std::map<TrialId, Standing>& standing) {
  const std::string name = "trial " + std::to_string(batch.trial.value);
  const auto found = standing.find(batch.trial);
  if (found == standing.end()) return fail(Code::kNotFound, name + " not found");
  if (found->second.run == batch.run) return {};
  return fail(Code::kAborted, "run " + std::to_string(batch.run) + " of " + name +
                                  " has ended; the current run is " + std::to_string(found->second.run));
}

/// Fast path: COPY for rows that are all new. Also ends the transaction. kAlreadyExists: fall back to
/// insert_rows().
Status copy_rows(Connection& connection, const std::vector<const MetricBatch*>& batches) {
  CopyRows rows;
  for (const MetricBatch* batch : batches) {
    for (const MetricRow& row : batch->rows) {
      rows.row(6);
      rows.add(batch->trial.value);
      rows.add(static_cast<std::int32_t>(batch->run));
      rows.add(row.group);
      rows.add(row.steps_completed);
      rows.add(row.reported);
      rows.add(row.metrics);
    }
  }
  if (rows.empty()) return connection.commit();
  // COMMIT travels with the COPY and saves a round trip.
  return connection.copy(
      "COPY metrics (trial_id, run, grp, steps_completed, reported, metrics) FROM STDIN (FORMAT binary); "
      "COMMIT",
      rows);
}

/// Slow path: rows that exist already get only metrics with new names.
Status insert_rows(Connection& connection, const std::vector<const MetricBatch*>& batches) {
  std::vector<std::int64_t> trials, numbers, steps;
  std::vector<std::string> groups, metrics;
  std::vector<WallTime> times;
  for (const MetricBatch* batch : batches) {
    for (const MetricRow& row : batch->rows) {
      trials.push_back(batch->trial.value);
      numbers.push_back(batch->run);
      steps.push_back(row.steps_completed);
      groups.push_back(row.group);
      metrics.push_back(row.metrics);
      times.push_back(row.reported);
    }
  }
  TRY(connection.query(
      "INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics)"
      " SELECT trial, run::integer, grp, steps, reported, metrics::json FROM"
      " unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::timestamptz[], $6::text[])"
      " AS r (trial, run, grp, steps, reported, metrics) ON CONFLICT DO NOTHING",
      trials, numbers, groups, steps, times, metrics));
  TRY(connection.query(
      "WITH named AS (SELECT DISTINCT ON (trial, grp, steps, key) trial, grp, steps, key, value FROM"
      " unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[]) WITH ORDINALITY"
      " AS r (trial, grp, steps, report, place), json_each(report::json)"
      " ORDER BY trial, grp, steps, key, place), more AS ("
      "SELECT trial, named.grp, steps, json_object_agg(key, value) AS report FROM named JOIN metrics m"
      " ON m.trial_id = trial AND m.grp = named.grp AND m.steps_completed = steps AND NOT m.archived"
      " WHERE NOT EXISTS (SELECT FROM json_object_keys(m.metrics) AS known WHERE known = key)"
      " GROUP BY 1, 2, 3)"
      " UPDATE metrics m SET metrics = (SELECT json_object_agg(key, value) FROM"
      " (SELECT * FROM json_each(m.metrics) UNION ALL SELECT * FROM json_each(report)) AS both_reports)"
      " FROM more"
      " WHERE m.trial_id = trial AND m.grp = more.grp AND m.steps_completed = steps AND NOT m.archived",
      trials, groups, steps, metrics));
  return connection.commit();
}

Status write_metrics(Connection& connection, const std::vector<MetricBatch>& batches,
                     std::vector<Status>& answers, MetricTriggers& triggers, LateRows& late) {
  using Store = Status (*)(Connection&, const std::vector<const MetricBatch*>&);
  for (const Store store : {copy_rows, insert_rows}) {
    TRY_ASSIGN(const auto standing, fence(connection, batches));
    std::vector<const MetricBatch*> current;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      answers[i] = answer_for(batches[i], standing);
      if (answers[i]) current.push_back(&batches[i]);
    }
    TRY(triggers.load(connection));
    TRY(triggers.queue(connection, current));
    // Chunks that cover the late rows are stale; readers fall back to the rows.
    for (const auto& [trial, its] : standing)
      if (its.late) TRY(drop_chunks(connection, trial, its.lowest));
    Status done = store(connection, current);
    if (!done && done.error().code == Code::kAlreadyExists && store == copy_rows) {
      connection.rollback();
      continue;
    }
    // Counted even when the reply to COMMIT was lost: a retry would find the rows stored and not count them.
    for (const auto& [trial, its] : standing)
      if (its.late) ++late_rows_of(late, trial.value);
    return done;
  }
  return {};
}

/// Log lines are numbered per agent and allocation.
using LogKey = std::pair<AllocationId, AgentId>;

/// Returns the next line number for each key, row-locked until the transaction ends.
Result<std::map<LogKey, std::int64_t>> positions(Connection& connection,
                                                 const std::vector<LogBatch>& batches) {
  std::map<LogKey, std::int64_t> found;
  for (const LogBatch& batch : batches) found[{batch.allocation, batch.agent}] = 1;
  std::vector<std::string> allocations, agents;
  for (const auto& [key, line] : found) {
    allocations.push_back(key.first.value);
    agents.push_back(key.second.value);
  }
  // A missing position must exist as a row before it can be locked.
  TRY(connection.query(
      "INSERT INTO log_positions (allocation_id, agent_id, next_line) SELECT allocation, agent, 1 FROM"
      " unnest($1::text[], $2::text[]) AS n (allocation, agent) ON CONFLICT DO NOTHING",
      allocations, agents));
  TRY_ASSIGN(const Rows rows,
             connection.query("SELECT p.allocation_id, p.agent_id, p.next_line FROM log_positions p"
                              " JOIN unnest($1::text[], $2::text[]) AS n (allocation, agent)"
                              " ON p.allocation_id = n.allocation AND p.agent_id = n.agent"
                              " ORDER BY p.allocation_id, p.agent_id FOR UPDATE OF p",
                              allocations, agents));
  for (Rows::Row row : rows) {
    LogKey key;
    row.into(key.first, key.second);
    found[key] = row.next<std::int64_t>();
  }
  return found;
}

void add(const LogBatch& batch, const LogLine& line, CopyRows& rows) {
  rows.row(9);
  rows.add(batch.task.value);
  rows.add(batch.allocation.value);
  rows.add(batch.agent.value);
  rows.add(line.rank);
  rows.add(line.time);
  rows.add(line.level);
  rows.add(line.stdtype);
  rows.add(line.source);
  rows.add_bytes(line.text);
}

Status write_logs(Connection& connection, const std::vector<LogBatch>& batches, LogTriggers& triggers,
                  LogPolicies& policies, std::vector<Result<std::int64_t>>& answers) {
  TRY(connection.begin());
  TRY(triggers.load(connection, batches));
  TRY(policies.load(connection, batches));
  TRY_ASSIGN(auto next, positions(connection, batches));
  CopyRows rows;
  std::set<std::string> tasks;
  std::vector<LogMatch> matches;
  std::map<LogKey, std::int64_t> bytes;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const LogBatch& batch = batches[i];
    std::int64_t& position = next[{batch.allocation, batch.agent}];
    for (std::size_t n = 0; n < batch.lines.size(); ++n) {
      const std::int64_t number = batch.first_line + static_cast<std::int64_t>(n);
      if (number < position) continue;
      add(batch, batch.lines[n], rows);
      bytes[{batch.allocation, batch.agent}] += static_cast<std::int64_t>(batch.lines[n].text.size());
      triggers.match(batch, batch.lines[n], matches);
      policies.match(batch, batch.lines[n]);
      position = number + 1;
    }
    tasks.insert(batch.task.value);
    answers[i] = position;
  }
  if (!rows.empty()) {
    // The task lock makes ids become visible in order, so that a follower never misses a line.
    const Statement lock = lock_tasks({tasks.begin(), tasks.end()});
    TRY(connection.run(lock.sql, lock.params));
    TRY(connection.copy(
        "COPY task_logs (task_id, allocation_id, agent_id, rank, time, level, stdtype, source, log)"
        " FROM STDIN (FORMAT binary)",
        rows));
    std::vector<std::string> allocations, agents;
    std::vector<std::int64_t> lines, added;
    for (const auto& [key, line] : next) {
      allocations.push_back(key.first.value);
      agents.push_back(key.second.value);
      lines.push_back(line);
      added.push_back(bytes[key]);
    }
    TRY(
        connection.query("UPDATE log_positions p SET next_line = n.line, bytes = p.bytes + n.added FROM"
                         " unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])"
                         " AS n (allocation, agent, line, added)"
                         " WHERE p.allocation_id = n.allocation AND p.agent_id = n.agent",
                         allocations, agents, lines, added));
    TRY(LogTriggers::queue(connection, matches));
    TRY(policies.store(connection));
  }
  return connection.commit();
}

}  // namespace

Result<std::vector<std::string>> check_json_object(std::string_view json, std::size_t limit, int depth) {
  Storable storable;
  const bool stored = json.size() <= limit && nlohmann::json::sax_parse(json.begin(), json.end(), &storable);
  if (stored && storable.plain) return std::move(storable.names);
  TRY_ASSIGN(const Json parsed, parse_json(json, {.bytes = limit, .depth = depth}));
  if (!parsed.is_object()) return fail(Code::kInvalidArgument, "must be a JSON object");
  if (!stored)
    return fail(Code::kInvalidArgument,
                "holds a NUL character or a number too small for a double; leave it out");
  std::vector<std::string> names;
  for (const auto& [name, value] : parsed.items()) names.push_back(name);
  return names;
}

/// A group of a trial that may have rows to pack.
struct Pack {
  TrialId trial;
  std::string group;
  std::function<void(Status)> done = [](const Status&) {};
};

struct BulkWriter::Impl {
  explicit Impl(const BulkOptions& options)
      : packs(options, "packs",
              [](Connection& connection, const std::vector<Pack>& batch, std::vector<Status>&) -> Status {
                for (const Pack& one : batch) TRY(pack_group(connection, one.trial, one.group));
                return {};
              }),
        metrics(options, "metrics",
                [this](Connection& connection, const std::vector<MetricBatch>& batches,
                       std::vector<Status>& answers) {
                  Status status = write_metrics(connection, batches, answers, metric_triggers, late);
                  if (status) count(batches);
                  return status;
                }),
        logs(options, "logs",
             [this, cancel = options.cancel_retries, exclude = options.exclude_agent](
                 Connection& connection, const std::vector<LogBatch>& batches,
                 std::vector<Result<std::int64_t>>& answers) -> Status {
               TRY(write_logs(connection, batches, log_triggers, policies, answers));
               for (const TrialId trial : policies.take_canceled()) cancel(trial);
               for (const auto& [trial, agent] : policies.take_excluded()) exclude(trial, agent);
               return {};
             }) {}

  /// Counts new rows and schedules packing. Metric thread only. Rows missed here (a restart, a full map) are
  /// packed one chunk later.
  void count(const std::vector<MetricBatch>& batches) {
    constexpr std::size_t kMaxGroups = 100'000;
    if (grown.size() > kMaxGroups) grown.clear();
    for (const MetricBatch& batch : batches) {
      for (const MetricRow& row : batch.rows) {
        std::int64_t& rows = grown[{batch.trial, row.group}];
        if (++rows < kChunkRows) continue;
        rows = 0;
        packs.queue.try_push(Pack{batch.trial, row.group});
      }
    }
  }

  LateRows late{};
  // Rows per group since it was last scheduled for packing. Metric thread only.
  std::map<std::pair<TrialId, std::string>, std::int64_t> grown;
  Lane<Pack, Status> packs;
  // Precedes `metrics`: its thread uses it.
  MetricTriggers metric_triggers;
  Lane<MetricBatch, Status> metrics;
  // Both precede `logs`: its thread uses them.
  LogTriggers log_triggers;
  LogPolicies policies;
  Lane<LogBatch, Result<std::int64_t>> logs;
};

BulkWriter::BulkWriter(const BulkOptions& options) : impl_(std::make_unique<Impl>(options)) {}
BulkWriter::~BulkWriter() { stop(); }
void BulkWriter::stop() {
  // Metrics schedule packs, so the packing thread stops last.
  impl_->metrics.stop();
  impl_->logs.stop();
  impl_->packs.stop();
}
bool BulkWriter::try_push(MetricBatch&& batch) { return impl_->metrics.queue.try_push(std::move(batch)); }
bool BulkWriter::try_push(LogBatch&& batch) { return impl_->logs.queue.try_push(std::move(batch)); }
bool BulkWriter::push(MetricBatch&& batch) { return impl_->metrics.queue.push(std::move(batch)); }
void BulkWriter::triggers_changed() {
  impl_->log_triggers.changed();
  impl_->metric_triggers.changed();
}

bool BulkWriter::push(LogBatch&& batch) { return impl_->logs.queue.push(std::move(batch)); }
void BulkWriter::pack(TrialId trial, const std::string& group) {
  impl_->packs.queue.try_push(Pack{trial, group});
}
std::uint64_t BulkWriter::late_rows(TrialId trial) const { return late_rows_of(impl_->late, trial.value); }

}  // namespace det::db
