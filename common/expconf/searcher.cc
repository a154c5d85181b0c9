// Section `searcher`: the searches and the fields of each.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "common/base/text.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

/// Batches of a step of `max_steps`, in the oldest configurations, unless the top level sets
/// `batches_per_step`.
constexpr std::int64_t kBatchesPerStep = 100;

std::vector<Field> common() {
  return {
      required("name", Type("single, random, grid, async_halving, adaptive_asha", any()), "search method"),
      required("metric", text({.min = 1, .max = 256}), "validation metric to optimize"),
      defaulted("smaller_is_better", boolean(), true, "true: minimize the metric; false: maximize it"),
      optional("source_trial_id", whole(1), "trials start from the newest checkpoint of this trial"),
      optional("source_checkpoint_uuid", text({.min = 1, .max = 64}),
               "trials start from this checkpoint; excludes source_trial_id"),
      optional("max_length", searcher_length_type(), "training length of a trial"),
      optional("max_steps", whole(1, 1'000'000'000),
               "old form of max_length, in steps of 100 batches or of batches_per_step"),
      optional("time_metric", text({.min = 1, .max = 256}),
               "validation metric that measures the training length, such as batches"),
      optional("max_time", whole(1), "maximum training length of a trial, in units of time_metric")};
}

Json read_max_trials(Reader& reader, const YamlNode& node, const std::string& path) {
  Json value = whole(1)(reader, node, path);
  if (value.is_null() || value <= kMaxTrials) return value;
  reader.problem(node, path, "E-CFG-LIMIT",
                 "at most " + std::to_string(kMaxTrials) + " trials, got " + node.text);
  return nullptr;
}
Field max_trials() {
  return required("max_trials", {"integer from 1 to 100000", read_max_trials}, "number of trials");
}

void check_common(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  if (resolved.contains("source_trial_id") && resolved.contains("source_checkpoint_uuid"))
    reader.problem(value_or_map(map, "source_checkpoint_uuid"), child(path, "source_checkpoint_uuid"),
                   "E-CFG-CONFLICT", "source_trial_id is set too; keep one of them");
  if (!resolved.contains("max_steps")) return;
  if (resolved.contains("max_length")) {
    reader.problem(value_or_map(map, "max_steps"), child(path, "max_steps"), "E-CFG-CONFLICT",
                   "max_length is set too; keep one of them");
  } else if (!resolved["max_steps"].is_null()) {
    // The top level multiplies again if it has batches_per_step.
    resolved["max_length"] = {{"batches", resolved["max_steps"].get<std::int64_t>() * kBatchesPerStep}};
  }
  resolved.erase("max_steps");
}

/// Halving searches must have the longest training of a trial and its unit.
void check_time(Reader& reader, const YamlNode& map, const std::string& path, const Json& resolved) {
  if (resolved.contains("max_length")) return;
  for (const auto& [name, doc] :
       {std::pair("time_metric", "the validation metric that counts time"),
        std::pair("max_time", "maximum training length of a trial, in units of time_metric")}) {
    if (!resolved.contains(name))
      reader.problem(map, child(path, name), "E-CFG-MISSING", std::string("is required: ") + doc);
  }
}

/// Returns the field with the longest training of a trial, and its value; a null value if unset.
std::pair<const char*, Json> longest(const Json& resolved) {
  const Json time = resolved.value("max_time", Json());
  const Json length = resolved.value("max_length", Json());
  if (!time.is_null() || !length.is_object()) return {"max_time", time};
  return {"max_length", length.begin().value()};
}

/// Whether the lowest of `rungs` rungs is at least one unit of training.
bool rungs_fit(const Json& most, const Json& divisor, std::int64_t rungs) {
  if (most.is_null() || divisor.is_null()) return true;
  return most.get<double>() / std::pow(divisor.get<double>(), static_cast<double>(rungs - 1)) >= 1;
}

void check_lowest_rung(Reader& reader, const YamlNode& at, const std::string& path, const Json& resolved,
                       std::int64_t rungs) {
  const auto [source, most] = longest(resolved);
  const Json divisor = resolved.value("divisor", Json());
  if (rungs_fit(most, divisor, rungs)) return;
  reader.problem(at, path, "E-CFG-CONFLICT",
                 std::string("rung lengths below 1: ") + source + " " + most.dump() + " divided " +
                     std::to_string(rungs - 1) + " times by " + divisor.dump() +
                     "; use fewer rungs or raise " + source);
}

void check_rungs(Reader& reader, const YamlNode& map, const std::string& path, const Json& resolved,
                 const char* name) {
  const Json rungs = resolved.value(name, Json());
  if (map.find(name) == nullptr || rungs.is_null()) return;
  check_lowest_rung(reader, value_or_map(map, name), child(path, name), resolved, rungs.get<std::int64_t>());
}

void warn_stop_once(Reader& reader, const YamlNode& map, const std::string& path) {
  if (map.find("stop_once") != nullptr)
    reader.warn(value_or_map(map, "stop_once"), child(path, "stop_once"), "E-CFG-REMOVED",
                "has no effect; rung_policy: stop or promote says what happens at a rung");
}

void check_async_halving(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  check_common(reader, map, path, resolved);
  check_time(reader, map, path, resolved);
  check_rungs(reader, map, path, resolved, "num_rungs");
  warn_stop_once(reader, map, path);
}

/// Reduces the default number of rungs to what fits. A number set by the user is checked instead.
void fit_default_rungs(const YamlNode& map, Json& resolved) {
  if (map.find("max_rungs") != nullptr) return;
  std::int64_t rungs = resolved["max_rungs"].get<std::int64_t>();
  while (rungs > 1 && !rungs_fit(longest(resolved).second, resolved.value("divisor", Json()), rungs)) --rungs;
  resolved["max_rungs"] = rungs;
}

void check_adaptive(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  check_common(reader, map, path, resolved);
  check_time(reader, map, path, resolved);
  check_rungs(reader, map, path, resolved, "max_rungs");
  warn_stop_once(reader, map, path);
  const YamlNode* brackets = map.find("bracket_rungs");
  const Json most = resolved.value("max_rungs", Json());
  fit_default_rungs(map, resolved);
  if (brackets == nullptr || !brackets->is_list() || most.is_null()) return;
  for (std::size_t i = 0; i < brackets->items.size(); ++i) {
    const YamlNode& rungs = brackets->items[i];
    const std::string at = child(child(path, "bracket_rungs"), i);
    // Wrong types were already reported by the schema.
    if (rungs.kind != YamlNode::Kind::kInt || rungs.integer < 1) continue;
    if (rungs.integer > most.get<std::int64_t>()) {
      reader.problem(rungs, at, "E-CFG-RANGE",
                     "must be at most max_rungs (" + most.dump() + "), got " + rungs.text);
    } else {
      check_lowest_rung(reader, rungs, at, resolved, rungs.integer);
    }
  }
}

/// A search: its fields beside the common ones, and its check.
struct SearcherKind {
  std::string name;
  std::vector<Field> fields;
  Check check;
};

const std::vector<SearcherKind>& searcher_kinds() {
  static const Field divisor =
      defaulted("divisor", real(1, false), 4, "1/divisor of the trials continue from a rung to the next");
  static const Field stop_once =
      optional("stop_once", boolean(), "accepted, without effect: see rung_policy");
  static const Field concurrency = defaulted("max_concurrent_trials", whole(0, kMaxTrials), 16,
                                             "maximum number of concurrent trials; 0: no limit");
  static const Field sampler =
      defaulted("sampler", choice({"random", "tpe"}), "random",
                "source of hyperparameters: random, or a model of earlier results (tpe)");
  static const Field rung_policy = defaulted(
      "rung_policy", choice({"stop", "promote"}), "stop",
      "stop: a rung stops trials permanently; promote: trials wait at a rung and may be promoted later");
  static const std::vector<SearcherKind> all{
      {"single", {}, check_common},
      {"random", {max_trials(), concurrency, sampler}, check_common},
      {"grid", {concurrency}, check_common},
      {"async_halving",
       {max_trials(), concurrency, divisor, stop_once,
        required("num_rungs", whole(1, 100), "number of rungs"), rung_policy, sampler},
       check_async_halving},
      {"adaptive_asha",
       {max_trials(), concurrency, divisor, stop_once,
        defaulted("mode", choice({"aggressive", "standard", "conservative"}), "standard",
                  "number of brackets: aggressive has one, with the most early stops; conservative includes "
                  "one without early stops"),
        defaulted("max_rungs", whole(1, 100), 5,
                  "maximum number of rungs of a bracket; the default is reduced to the number that fits"),
        defaulted("bracket_rungs", list_of(whole(1, 100)), Json::array(),
                  "numbers of rungs of the brackets; empty: set by mode"),
        rung_policy, sampler},
       check_adaptive},
  };
  return all;
}

/// Searchers of earlier releases of Determined AI that no longer exist.
bool is_removed(const std::string& name) {
  static const std::vector<std::string> names{"adaptive", "adaptive_simple", "sync_halving", "custom", "pbt"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> searcher_names() {
  std::vector<std::string> names;
  for (const SearcherKind& kind : searcher_kinds()) names.push_back(kind.name);
  return names;
}

/// Returns the searches that have the field; empty if it is a common or unknown one.
std::vector<std::string> owners_of(const std::string& field) {
  std::vector<std::string> owners;
  for (const SearcherKind& kind : searcher_kinds()) {
    for (const Field& own : kind.fields) {
      if (own.name == field) owners.push_back(kind.name);
    }
  }
  return owners;
}

/// Text after "unknown field" for a field of another search.
std::string belongs_to(const std::string& field, const std::string& here) {
  const std::vector<std::string> owners = owners_of(field);
  return owners.empty() ? "" : " of searcher " + here + "; it belongs to " + join(owners, ", ");
}

void refuse_name(Reader& reader, const YamlNode& name, const std::string& path) {
  if (is_removed(name.text)) {
    reader.problem(name, path, "E-CFG-REMOVED", "'" + name.text + "' has been removed; use adaptive_asha");
    return;
  }
  const std::vector<std::string> all = searcher_names();
  const std::string meant =
      name.text == "asha" ? "; did you mean \"adaptive_asha\"?" : did_you_mean(name.text, all);
  reader.problem(name, path, "E-CFG-ENUM", "must be one of " + join(all, ", ") + ", " + found(name) + meant);
}

/// The union of the fields of all searches, for partial documents and the reference page.
std::vector<Field> searcher_fields() {
  std::vector<Field> fields = common();
  std::set<std::string> known;
  for (const SearcherKind& kind : searcher_kinds()) {
    for (const Field& own : kind.fields) {
      if (!known.insert(own.name).second) continue;
      fields.push_back(own);
      fields.back().doc += "; of " + join(owners_of(own.name), ", ");
    }
  }
  return fields;
}

/// The type of each search, by name. Built once.
const std::map<std::string, Type>& tables() {
  static const std::map<std::string, Type> all = [] {
    std::map<std::string, Type> made;
    for (const SearcherKind& kind : searcher_kinds()) {
      std::vector<Field> fields = common();
      fields.insert(fields.end(), kind.fields.begin(), kind.fields.end());
      made.emplace(kind.name,
                   table(std::move(fields), kind.check,
                         [here = kind.name](const std::string& field) { return belongs_to(field, here); }));
    }
    return made;
  }();
  return all;
}

Json read_searcher(Reader& reader, const YamlNode& node, const std::string& path) {
  if (!node.is_map()) return wrong_type(reader, node, path, "a map");
  const YamlNode* name = node.find("name");
  const std::string name_path = child(path, "name");
  if (name != nullptr && !name->is_null() && name->kind != YamlNode::Kind::kString)
    return wrong_type(reader, *name, name_path, "a string");
  if (name != nullptr && !name->is_null()) {
    if (const auto found = tables().find(name->text); found != tables().end())
      return found->second(reader, node, path);
  }
  // A partial document may leave the choice of the search to another layer.
  if ((name == nullptr || name->is_null()) && reader.partial())
    return table(searcher_fields())(reader, node, path);
  if (name == nullptr || name->is_null()) {
    reader.problem(node, name_path, "E-CFG-MISSING", "is required: " + join(searcher_names(), ", "));
  } else {
    refuse_name(reader, *name, name_path);
  }
  if (node.find("metric") == nullptr)
    reader.problem(node, child(path, "metric"), "E-CFG-MISSING",
                   "is required: the validation metric that tells good from bad");
  return nullptr;
}

}  // namespace

Type searcher_type() { return {"map", read_searcher, searcher_fields()}; }

}  // namespace det::expconf
