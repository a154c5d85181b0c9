// Translation of searches into SQL. No text of the search becomes SQL: columns and operators are looked up in
// tables, and values and hyperparameter names are bound as parameters.
#include "master/db/search/search.h"

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "master/db/search/columns.h"

namespace det::db {
namespace {

constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxSorts = 8;
// JIT compilation costs more than it saves here; hashing the summaries of 100,000 experiments needs the
// memory. PostgreSQL takes reading JSON for as cheap as reading a number, and so reads it in one process
// where two would take half the time; a low cost of parallel rows makes up for that.
constexpr const char* kBegin =
    "BEGIN READ ONLY; SET LOCAL statement_timeout = 10000; SET LOCAL jit = off; SET LOCAL work_mem = '64MB'; "
    "SET LOCAL parallel_tuple_cost = 0.01";

/// A part of ORDER BY.
struct SortKey {
  std::string sql;
  std::string direction;
};

const std::map<std::string_view, std::string_view>& comparisons() {
  static const std::map<std::string_view, std::string_view> table = {
      {"=", "="}, {"!=", "<>"}, {"<", "<"}, {"<=", "<="}, {">", ">"}, {">=", ">="}};
  return table;
}

/// Pattern of LIKE for texts that contain `text`. LIKE is three times as fast as position().
std::string containing(std::string_view text) {
  std::string pattern = "%";
  for (const char c : text) {
    if (c == '%' || c == '_' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern + "%";
}

/// Stored name of an API state. The API shows ACTIVE experiments as queued, pulling, starting or running.
std::string state(std::string name) {
  constexpr std::string_view kPrefix = "STATE_";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  for (const std::string_view live : {"QUEUED", "PULLING", "STARTING", "RUNNING"})
    if (name == live) return "ACTIVE";
  return name;
}

enum class Subject { kExperiments, kRuns };

/// Translates one search and collects all problems instead of failing at the first.
class Builder {
 public:
  explicit Builder(Subject subject) : runs_(subject == Subject::kRuns) {}
  /// `counted` as in SearchSql.
  SearchSql take(bool counted) && {
    const int count = params_.size();
    const std::string part = " OFFSET $" + std::to_string(count + 1) + " LIMIT $" + std::to_string(count + 2);
    const std::string id = runs_ ? "t.id" : reads_experiments() ? "e.id" : "best.experiment_id";
    const std::string last = runs_ ? "id" : "id DESC";
    std::string page, order;
    if (counted) {
      // A table of its own: for a window function PostgreSQL chooses a plan for the rows of the page alone.
      std::string keys;
      for (std::size_t i = 0; i < order_.size(); ++i) {
        const std::string name = "key" + std::to_string(i);
        keys += ", " + order_[i].sql + " AS " + name;
        order += name + order_[i].direction + ", ";
      }
      page = "WITH found AS MATERIALIZED (SELECT " + id + " AS id" + keys + from_where() +
             ") SELECT id, (SELECT count(*) FROM found) FROM found ORDER BY " + order + last;
    } else {
      for (const SortKey& key : order_) order += key.sql + key.direction + ", ";
      page = "SELECT " + id + " AS id" + from_where() + " ORDER BY " + order + id + (runs_ ? "" : " DESC");
    }
    return {
        .count = std::move(count_), .page = page + part, .counted = counted, .params = std::move(params_)};
  }
  /// Adds a condition to WHERE; "" adds nothing.
  void require(const std::string& condition) {
    if (!condition.empty()) where_ += " AND " + condition;
  }
  /// Adds a condition on a column of the experiment that its summary contains too.
  void require_of_experiment(std::string before, std::string column) {
    of_experiment_.push_back({std::move(before), std::move(column)});
  }
  /// Call after the last condition: the count query then joins no table that only the sort order needs.
  void end_of_condition() { count_ = "SELECT count(*)" + from_where(); }
  const std::vector<std::string>& problems() const { return problems_; }
  void problem(std::string text) { problems_.push_back(std::move(text)); }

  template <typename T>
  std::string parameter(const T& value) {
    params_.add(value);
    return "$" + std::to_string(params_.size());
  }

  std::optional<Sortable> column(std::string_view name) {
    // Remember which joins the statement needs.
    const auto& known = runs_ ? run_columns() : experiment_columns();
    if (auto found = known.find(name); found != known.end()) {
      const ColumnTable table = found->second.table;
      best_ = best_ || table == ColumnTable::kSummaries;
      user_ = user_ || table == ColumnTable::kOwner;
      experiment_ = experiment_ || table != ColumnTable::kSummaries;
      return found->second;
    }
    using Source = std::pair<std::string_view, std::string_view>;
    constexpr Source kSources[] = {{"hp.", "best.hparams"},
                                   {"metadata.", "noted.searchable"},
                                   {"validation.", "best.validation"},
                                   {"training.", "best.training"}};
    constexpr Source kRunSources[] = {{"hp.", "t.hparams::jsonb"}, {"metadata.", "noted.searchable"}};
    for (const auto& [prefix, json] : runs_ ? std::span<const Source>(kRunSources) : kSources) {
      if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
      const std::string_view rest = name.substr(prefix.size());
      best_ = !runs_;
      noted_ = noted_ || prefix == "metadata.";
      // Names of metrics may contain dots; in the other sources a dot separates levels.
      const bool levels = prefix == "hp." || prefix == "metadata.";
      std::string sql = "(" + std::string(json);
      for (const std::string& level : levels ? split(rest, '.') : std::vector<std::string>{std::string(rest)})
        sql += " -> " + parameter(level) + "::text";
      sql += ")";
      const std::string read = sql;
      if (!levels) sql = or_summary(std::move(sql), prefix.substr(0, prefix.size() - 1), rest);
      const bool cheap = sql == read && !runs_;  // trials store hyperparameters as text
      return Sortable{.sql = std::move(sql), .kind = ColumnKind::kJson, .cheap = cheap};
    }
    problem("column \"" + make_utf8(std::string(name)) + "\" is not known");
    return std::nullopt;
  }

  /// `sql`, the metric with this name; where there is none, and the name ends in .min, .max, .mean or .last,
  /// that value over all reports of the best trial.
  std::string or_summary(std::string sql, std::string_view metric_group, std::string_view name) {
    static const std::map<std::string_view, std::string_view> functions = {
        {"min", "min"}, {"max", "max"}, {"mean", "avg"}, {"last", ""}};
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return sql;
    const auto function = functions.find(name.substr(dot + 1));
    if (function == functions.end()) return sql;
    const std::string metric = parameter(std::string(name.substr(0, dot))) + "::text";
    // The type is checked before the cast: conditions come before the values of a SELECT.
    return "coalesce(" + sql + ", (SELECT to_jsonb(" + std::string(function->second) + "((m.metrics ->> " +
           metric + ")::float8)) FROM metrics m WHERE m.trial_id = best.trial_id AND m.grp = '" +
           std::string(metric_group) + "' AND NOT m.archived AND json_typeof(m.metrics -> " + metric +
           ") = 'number'" + (function->second.empty() ? " ORDER BY m.steps_completed DESC LIMIT 1" : "") +
           "))";
  }

  static std::string as_number(const Sortable& column) {
    if (column.kind == ColumnKind::kNumber) return column.sql;
    if (column.kind != ColumnKind::kJson) return "NULL::float8";
    return "(CASE WHEN jsonb_typeof(" + column.sql + ") = 'number' THEN " + column.sql + "::float8 END)";
  }
  static std::string as_text(const Sortable& column) {
    if (column.kind == ColumnKind::kJson) return "(" + column.sql + " #>> '{}')";
    if (column.kind == ColumnKind::kArray) return "array_to_string(" + column.sql + ", chr(10))";
    return "(" + column.sql + ")::text";
  }

  /// IS NULL where possible: the dashboards filter on endTime, and formatting all times as text took a third
  /// of the query.
  static std::string empty(const Sortable& column) {
    if (column.kind == ColumnKind::kNumber || column.kind == ColumnKind::kTime)
      return "(" + column.sql + " IS NULL)";
    return "(coalesce(" + as_text(column) + ", '') = '')";
  }

  std::string contains(const Sortable& column, const std::string& value) {
    return "lower(coalesce(" + as_text(column) + ", '')) LIKE lower(" + parameter(containing(value)) + ")";
  }

  /// Experiments with the text in their name, description or labels, or with that id.
  void require_text(const std::string& text) {
    best_ = true;
    std::string found = "best.words LIKE lower(" + parameter(containing(text)) + ")";
    std::int64_t id = 0;
    const char* const last = text.data() + text.size();
    if (const auto read = std::from_chars(text.data(), last, id); read.ec == std::errc() && read.ptr == last)
      found = "(best.experiment_id = " + parameter(id) + " OR " + found + ")";
    require(found);
  }

  /// The order of jsonb equals that of numbers, and one extraction is enough for most rows: values of other
  /// types are smaller or greater than every number.
  std::string compare_number(const Sortable& column, const std::string& sign, double value) {
    const std::string number = parameter(value);
    if (column.kind != ColumnKind::kJson)
      return "coalesce(" + as_number(column) + " " + sign + " " + number + ", false)";
    return "coalesce(" + column.sql + " " + sign + " to_jsonb(" + number + "::float8) AND jsonb_typeof(" +
           column.sql + ") = 'number', false)";
  }

  /// Returns "" after recording a problem.
  std::string compare(const Sortable& column, std::string_view op, const Json& value) {
    const std::string sign(comparisons().at(op));
    if (value.is_number()) return compare_number(column, sign, value.get<double>());
    if (value.is_boolean())
      return "coalesce(" + as_text(column) + " " + sign + " " +
             parameter(value.get<bool>() ? "true" : "false") + ", false)";
    if (!value.is_string()) {
      problem("the value of \"" + std::string(op) + "\" must be text, a number, true or false");
      return "";
    }
    const auto text =
        column.kind == ColumnKind::kState ? state(value.get<std::string>()) : value.get<std::string>();
    if (column.kind == ColumnKind::kTime && !parse_rfc3339(text) && !parse_rfc3339(text + "T00:00:00Z")) {
      problem("\"" + make_utf8(text) + "\" is no time; write it as 2026-01-31 or 2026-01-31T12:00:00Z");
      return "";
    }
    if (column.kind == ColumnKind::kTime)
      return "coalesce(" + column.sql + " " + sign + " " + parameter(text) + "::text::timestamptz, false)";
    if (column.kind == ColumnKind::kArray && (op == "=" || op == "!="))
      return std::string(op == "=" ? "" : "NOT ") + parameter(text) + " = ANY (" + column.sql + ")";
    return "coalesce(" + as_text(column) + " " + sign + " " + parameter(text) + ", " +
           (op == "!=" ? "true" : "false") + ")";
  }

  std::string field(const Json& node) {
    std::string name = node.value("columnName", "");
    // Filters of runs name hyperparameters with or without the prefix.
    if (node.value("location", "") == "LOCATION_TYPE_RUN_HYPERPARAMETERS" && !name.starts_with("hp."))
      name = "hp." + name;
    const std::string op = node.value("operator", "");
    const auto found = column(name);
    if (!found) return "";
    const Json value = node.contains("value") ? node["value"] : Json();
    if (op == "isEmpty") return empty(*found);
    if (op == "notEmpty") return "NOT " + empty(*found);
    if (op == "contains" || op == "notContains") {
      const std::string inner =
          contains(*found, value.is_string() ? value.get<std::string>() : dump_json(value));
      return op == "contains" ? inner : "NOT " + inner;
    }
    if (!comparisons().contains(op)) {
      problem("operator \"" + make_utf8(op) + "\" is not known");
      return "";
    }
    if (!value.is_array()) return compare(*found, op, value);
    // A list matches when any of its values does.
    std::string any;
    for (const Json& one : value) any += (any.empty() ? "" : " OR ") + compare(*found, "=", one);
    if (any.empty()) return "true";
    return op == "!=" ? "NOT (" + any + ")" : "(" + any + ")";
  }

  std::string group(const Json& node, int depth) {
    if (!node.is_object() || depth > kMaxDepth) {
      problem("filter: groups and fields are objects, at most " + std::to_string(kMaxDepth) + " deep");
      return "";
    }
    if (node.value("kind", "group") == "field") return field(node);
    const std::string joint = node.value("conjunction", "and") == "or" ? " OR " : " AND ";
    std::string all;
    if (!node.contains("children") || !node["children"].is_array()) return "true";
    for (const Json& child : node["children"]) {
      const std::string one = group(child, depth + 1);
      if (!one.empty()) all += (all.empty() ? "" : joint) + one;
    }
    return all.empty() ? "true" : "(" + all + ")";
  }

  void order(std::string_view sort) {
    std::size_t count = 0;
    for (const std::string& part : split(sort, ',')) {
      if (part.empty()) continue;
      const std::size_t at = part.rfind('=');
      const std::string way = at == std::string::npos ? "asc" : part.substr(at + 1);
      if (way != "asc" && way != "desc") problem("sort: \"" + make_utf8(way) + "\" is neither asc nor desc");
      if (++count > kMaxSorts) return problem("sort: at most " + std::to_string(kMaxSorts) + " columns");
      const auto found = column(part.substr(0, at));
      if (!found) continue;
      const std::string tail =
          (way == "desc" ? " DESC" : " ASC") + std::string(found->never_null ? "" : " NULLS LAST");
      // JSON null is sorted last, like NULL.
      const std::string not_null = "nullif(" + found->sql + ", 'null')";
      if (found->kind == ColumnKind::kJson && found->cheap) {
        // Numbers first: PostgreSQL sorts them several times as fast as jsonb, and float8 three times as fast
        // as numeric.
        order_.push_back({as_number(*found), tail});
        // Metrics are numbers; for others of them the order of ids is enough.
        if (!part.starts_with("validation.") && !part.starts_with("training."))
          order_.push_back(
              {"CASE WHEN jsonb_typeof(" + found->sql + ") <> 'number' THEN " + not_null + " END", tail});
      } else if (found->kind == ColumnKind::kJson) {
        order_.push_back({not_null, tail});
      } else if (found->kind == ColumnKind::kText) {
        // By code points, so that no locale decides, and several times as fast.
        order_.push_back({"lower(" + found->sql + ") COLLATE \"C\"", tail});
      } else {
        order_.push_back({found->sql, tail});
      }
    }
  }

 private:
  /// The summary alone is read where it has all columns.
  bool reads_experiments() const { return runs_ || experiment_ || !best_; }
  std::string from_where() const {
    std::string from =
        runs_ ? " FROM trials t JOIN experiments e ON e.id = t.experiment_id" : " FROM experiments e";
    if (!reads_experiments()) from = " FROM experiment_summaries best";
    if (user_) from += " JOIN users u ON u.id = e.owner_id";
    // Every experiment has a row. An outer join would compare conditions after the join.
    if (best_ && reads_experiments()) from += " JOIN experiment_summaries best ON best.experiment_id = e.id";
    if (noted_)
      from += std::string(" LEFT JOIN run_metadata noted ON noted.trial_id = ") +
              (runs_ ? "t.id" : "best.trial_id");
    std::string where = where_;
    for (const auto& [before, column] : of_experiment_)
      where += " AND " + before + (reads_experiments() ? "e." : "best.") + column;
    return from + where;
  }
  // Filled in by require() and order().
  std::string where_ = " WHERE true", count_;
  std::vector<SortKey> order_;
  std::vector<std::pair<std::string, std::string>> of_experiment_;
  Params params_;
  std::vector<std::string> problems_;
  const bool runs_;
  bool experiment_ = false, user_ = false, best_ = false, noted_ = false;
};

/// `archived`: whether archived experiments match when the filter does not say it.
Status add_filter(Builder& builder, const std::string& text, bool archived = false) {
  if (!text.empty()) {
    TRY_ASSIGN(const Json filter, parse_json(text, {.bytes = 64 << 10, .depth = 2 * kMaxDepth + 4}));
    if (!filter.is_object()) return fail(Code::kInvalidArgument, "filter: must be a JSON object");
    try {
      archived = filter.value("showArchived", archived);
      if (filter.contains("filterGroup")) builder.require(builder.group(filter["filterGroup"], 1));
    } catch (const nlohmann::json::exception&) {
      return fail(Code::kInvalidArgument, "filter: kind, conjunction, columnName and operator must be text");
    }
  }
  if (!archived) builder.require_of_experiment("NOT ", "archived");
  return {};
}

void add_place(Builder& builder, const std::optional<std::int64_t>& project, const Visible& visible) {
  if (project) builder.require_of_experiment("", "project_id = " + builder.parameter(*project));
  if (visible) {
    builder.require_of_experiment("",
                                  "project_id IN (SELECT p.id FROM projects p WHERE p.workspace_id = ANY (" +
                                      builder.parameter(*visible) + "))");
  }
}

/// Adds the sort order, the last part of a search. `filtered`: it has conditions without an index, which are
/// then evaluated once for the page and the number of matches. Without them the number comes from an index.
Result<SearchSql> finish(Builder builder, const std::string& sort, bool filtered) {
  builder.end_of_condition();
  builder.order(sort);
  if (!builder.problems().empty()) return fail(Code::kInvalidArgument, join(builder.problems(), "; "));
  return std::move(builder).take(filtered);
}

/// Returns the ids of one page in order, and fills in all of `page` but its rows.
template <typename Row>
Result<std::vector<std::int64_t>> page_ids(Pool& pool, const SearchSql& sql, const Window& window,
                                           Page<Row>& page) {
  // Every statement runs under the limits of kBegin, in a read-only transaction.
  const auto within = [&](const std::string& text, const Params& params) {
    return pool.with<Rows>([&](Connection& connection) -> Result<Rows> {
      TRY(connection.script(kBegin));
      return connection.run(text, params);
    });
  };
  const auto ids_of = [&](std::int64_t offset, std::optional<std::int64_t> limit) {
    Params params = sql.params;
    params.add(offset);
    params.add(limit);
    return within(sql.page, params);
  };
  if (sql.counted && window.offset >= 0 && window.limit > -2) {
    const auto limit = window.limit < 0 ? std::nullopt : std::optional(window.limit);
    TRY_ASSIGN(const Rows found, ids_of(window.offset, limit));
    std::vector<std::int64_t> ids;
    for (Rows::Row row : found) {
      ids.push_back(row.next<std::int64_t>());
      page.total = row.next<std::int64_t>();
    }
    page.start = window.offset;
    if (!ids.empty()) return ids;
  }
  // Without matches on the page their number is unknown.
  TRY_ASSIGN(const Rows counted, within(sql.count, sql.params));
  page.total = counted[0].template next<std::int64_t>();
  const Span span = resolve(window, page.total);
  page.start = span.first;
  if (span.count == 0) return std::vector<std::int64_t>();
  TRY_ASSIGN(const Rows found, ids_of(span.first, span.count));
  return found.template column<std::int64_t>();
}

}  // namespace

Result<SearchSql> search_sql(const ExperimentSearch& search) {
  Builder builder(Subject::kExperiments);
  TRY(add_filter(builder, search.filter));
  add_place(builder, search.project, search.visible);
  if (!search.text.empty()) builder.require_text(search.text);
  return finish(std::move(builder), search.sort, !search.text.empty() || !search.filter.empty());
}

Result<SearchSql> run_search_sql(const RunSearch& search) {
  Builder builder(Subject::kRuns);
  TRY(add_filter(builder, search.filter, !search.ids.empty()));
  add_place(builder, search.project, search.visible);
  if (!search.ids.empty()) builder.require("t.id = ANY (" + builder.parameter(search.ids) + ")");
  return finish(std::move(builder), search.sort, !search.filter.empty());
}

Result<Page<FoundExperiment>> search_experiments(Pool& pool, const ExperimentSearch& search) {
  TRY_ASSIGN(const SearchSql sql, search_sql(search));
  Page<FoundExperiment> page;
  TRY_ASSIGN(const std::vector<std::int64_t> ids, page_ids(pool, sql, search.window, page));
  if (ids.empty()) return page;
  TRY_ASSIGN(std::vector<ExperimentRow> rows, experiments_by_id(pool, ids));
  // Return the values as reported instead of the searchable jsonb, which may spell numbers differently.
  TRY_ASSIGN(const Rows best,
             pool.query("SELECT best.experiment_id, coalesce(t.hparams::text, ''), best.validation::text,"
                        " best.training::text, noted.metadata FROM experiment_summaries best"
                        " JOIN trials t ON t.id = best.trial_id"
                        " LEFT JOIN run_metadata noted ON noted.trial_id = best.trial_id"
                        " WHERE best.experiment_id = ANY ($1)",
                        ids));
  std::map<std::int64_t, FoundExperiment> by_id;
  for (ExperimentRow& row : rows) by_id[row.id.value].row = std::move(row);
  for (Rows::Row row : best) {
    FoundExperiment& one = by_id[row.next<std::int64_t>()];
    row.into(one.best_hparams, one.best_validation, one.best_training, one.best_metadata);
  }
  for (const std::int64_t id : ids)
    if (auto one = by_id.find(id); one != by_id.end()) page.rows.push_back(std::move(one->second));
  return page;
}

Result<Page<FoundRun>> search_runs(Pool& pool, const RunSearch& search) {
  TRY_ASSIGN(const SearchSql sql, run_search_sql(search));
  Page<FoundRun> page;
  TRY_ASSIGN(const std::vector<std::int64_t> ids, page_ids(pool, sql, search.window, page));
  if (ids.empty()) return page;
  TRY_ASSIGN(std::vector<TrialRow> trials, trials_by_id(pool, ids));
  std::vector<std::int64_t> parents;
  for (const TrialRow& row : trials) parents.push_back(row.trial.experiment.value);
  TRY_ASSIGN(const std::vector<ExperimentRow> experiments, experiments_by_id(pool, parents));
  TRY_ASSIGN(const Rows noted,
             pool.query("SELECT trial_id, metadata FROM run_metadata WHERE trial_id = ANY ($1)", ids));
  std::map<std::int64_t, const ExperimentRow*> by_id;
  for (const ExperimentRow& row : experiments) by_id[row.id.value] = &row;
  std::map<std::int64_t, FoundRun> found;
  for (TrialRow& row : trials) {
    const auto parent = by_id.find(row.trial.experiment.value);
    // Deleted since the search.
    if (parent == by_id.end()) continue;
    FoundRun& run = found[row.trial.id.value];
    run = {.trial = std::move(row), .experiment = *parent->second, .metadata = {}};
  }
  for (Rows::Row row : noted)
    if (auto one = found.find(row.next<std::int64_t>()); one != found.end())
      one->second.metadata = row.next<std::string>();
  for (const std::int64_t id : ids)
    if (auto one = found.find(id); one != found.end()) page.rows.push_back(std::move(one->second));
  return page;
}

}  // namespace det::db
