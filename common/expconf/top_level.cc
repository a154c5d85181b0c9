// Top level of the configuration: fields outside of sections, and checks across sections.
#include <algorithm>
#include <set>

#include "common/base/text.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

/// Reads a list of strings, or the keys of a map. Resolved: a list without duplicates.
Json read_labels(Reader& reader, const YamlNode& node, const std::string& path) {
  static const Type label = text({.min = 1, .max = 128});
  std::vector<std::string> labels;
  const auto add = [&](const Json& value) {
    if (!value.is_string()) return;
    auto label_text = value.get<std::string>();
    if (std::find(labels.begin(), labels.end(), label_text) == labels.end())
      labels.push_back(std::move(label_text));
  };
  if (node.is_map()) {
    for (const YamlEntry& entry : node.entries) add(entry.key);
  } else {
    for (const Json& value : list_of(label)(reader, node, path)) add(value);
  }
  return labels;
}

/// Reads a command line, or an argument vector.
Json read_entrypoint(Reader& reader, const YamlNode& node, const std::string& path) {
  constexpr TextRules kLine{.min = 1, .max = 32768, .one_line = false};
  if (node.is_list()) return list_of(text(kLine), 1, 1000)(reader, node, path);
  if (node.kind != YamlNode::Kind::kString)
    return wrong_type(reader, node, path, "a command line or a list of strings");
  Json value = text(kLine)(reader, node, path);
  if (value.is_string() && trim(node.text).empty()) {
    reader.problem(node, path, "E-CFG-RANGE", "must not be blank");
    return nullptr;
  }
  return value;
}

Type profiling_type() {
  return table({defaulted("enabled", boolean(), false, "measure the phases of batches"),
                defaulted("begin_on_batch", whole(0), 0, kIdle), optional("end_after_batch", whole(0), kIdle),
                defaulted("sync_timings", boolean(), true, kIdle)},
               [](Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
                 const Json begin = resolved.value("begin_on_batch", Json());
                 const Json end = resolved.value("end_after_batch", Json());
                 if (begin.is_null() || end.is_null() || begin <= end) return;
                 reader.problem(value_or_map(map, "end_after_batch"), child(path, "end_after_batch"),
                                "E-CFG-CONFLICT", "is before begin_on_batch (" + begin.dump() + ")");
               });
}

Type integrations_type() {
  const Type name = text({.min = 1});
  const Type webhooks =
      table({optional("webhook_id", list_of(whole(1)), "ids of the webhooks with mode SPECIFIC to notify"),
             optional("webhook_name", list_of(name), "names of such webhooks"),
             defaulted("exclude", boolean(), false, "true: notify no webhook")});
  const Type pachyderm = table({required("pachd", free_map(), "host and port"),
                                required("proxy", free_map(), "scheme, host, port"),
                                required("dataset", free_map(), "project, repo, commit, branch, token")});
  return table({optional("webhooks", webhooks, "webhooks of the experiment"), idle("pachyderm", pachyderm)});
}

constexpr std::int64_t kMaxSeed = (1LL << 31) - 1;

bool power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/// Reads `exact`, `fast` or a map. Exact training gives the same bits on any number of slots that divides the
/// virtual shards.
Type reproducibility_type() {
  static const Type mode = choice({"fast", "exact"});
  const Type map =
      table({defaulted("experiment_seed", whole(0, kMaxSeed), 0,
                       "seed of the search and its trials; default: random"),
             defaulted("mode", mode, "fast",
                       "exact: bit-identical results on any number of slots that divides virtual_shards"),
             defaulted("virtual_shards", whole(1, 1024), 4,
                       "maximum number of slots of exact training; a power of two")},
            [](Reader& reader, const YamlNode& node, const std::string& path, Json& resolved) {
              const Json shards = resolved["virtual_shards"];
              if (shards.is_null() || power_of_two(shards.get<std::int64_t>())) return;
              reader.problem(value_or_map(node, "virtual_shards"), child(path, "virtual_shards"),
                             "E-CFG-RANGE", "must be a power of two: 1, 2, 4, 8, …");
            });
  auto read = [map](Reader& reader, const YamlNode& node, const std::string& path) {
    if (node.is_map()) return map(reader, node, path);
    if (node.kind == YamlNode::Kind::kNull) return map(reader, node, path);
    const Json word = mode(reader, node, path);
    // The short form is the map with only `mode` set.
    YamlNode empty = node;
    empty.kind = YamlNode::Kind::kMap;
    Json resolved = map(reader, empty, path);
    if (resolved.is_object()) resolved["mode"] = word;
    return resolved;
  };
  return {"exact, fast, or a map", std::move(read), map.fields()};
}

/// Exact training distributes virtual shards evenly to slots, so the slots must divide the shards.
void check_exact(Reader& reader, const YamlNode& map, const Json& resolved) {
  const Json exact = resolved.value("reproducibility", Json()),
             resources = resolved.value("resources", Json());
  if (!exact.is_object() || !resources.is_object() || exact.value("mode", Json()) != "exact") return;
  const Json shards = exact.value("virtual_shards", Json()),
             slots = resources.value("slots_per_trial", Json());
  if (!shards.is_number_integer() || !slots.is_number_integer()) return;
  const auto count = slots.get<std::int64_t>();
  if (count <= 1 || (power_of_two(count) && count <= shards.get<std::int64_t>())) return;
  const YamlNode* section = map.find("resources");
  reader.problem(
      section != nullptr ? value_or_map(*section, "slots_per_trial") : map, "resources.slots_per_trial",
      "E-CFG-CONFLICT",
      "reproducibility is exact over " + shards.dump() +
          " virtual shards: use a power of two up to that, or raise reproducibility.virtual_shards");
}

/// Exact training hides steps behind other values of the parameters; ZeRO fixes their memory.
void check_zero(Reader& reader, const YamlNode& map, const Json& resolved) {
  const Json exact = resolved.value("reproducibility", Json()),
             optimizations = resolved.value("optimizations", Json());
  if (!exact.is_object() || !optimizations.is_object() || exact.value("mode", Json()) != "exact") return;
  const YamlNode* section = map.find("optimizations");
  if (section == nullptr || optimizations.value("zero", Json()) != 1) return;
  reader.problem(value_or_map(*section, "zero"), "optimizations.zero", "E-CFG-CONFLICT",
                 "does not go with reproducibility: exact; set one of them");
}

/// Section of an HPC scheduler (slurm, pbs): accepted and stored, without effect.
Type cluster_manager_type(const char* arguments) {
  return table({optional("slots_per_node", whole(1), "of its nodes"),
                optional("gpu_type", text(), "of its nodes"),
                defaulted(arguments, list_of(text({.min = 1})), Json::array(), "of its command line")});
}

/// Workspace and project are set together or not at all.
void check_place(Reader& reader, const YamlNode& map, const Json& resolved) {
  for (const auto& [one, other] : {std::pair("workspace", "project"), std::pair("project", "workspace")}) {
    const Json &given = resolved[one], &missing = resolved[other];
    if (given.is_string() && missing.is_string() && !given.get<std::string>().empty() &&
        missing.get<std::string>().empty())
      reader.problem(value_or_map(map, one), one, "E-CFG-CONFLICT",
                     std::string(other) + " is not set; give both workspace and project, or neither");
  }
}

/// Checks the hyperparameters against the needs of the searcher.
void check_search(Reader& reader, const YamlNode& map, const Json& resolved) {
  const Json searcher = resolved.value("searcher", Json()), space = resolved.value("hyperparameters", Json());
  if (!searcher.is_object() || !space.is_object()) return;
  const YamlNode& node = value_or_map(map, "hyperparameters");
  // Without the section, problems point at the document instead.
  const YamlNode empty{
      .kind = YamlNode::Kind::kMap, .line = node.line, .column = node.column, .source = node.source};
  const YamlNode& at = map.find("hyperparameters") != nullptr ? node : empty;
  if (searcher["name"] == "grid") check_grid(reader, at, "hyperparameters", space);
  if (searcher["name"] == "single") check_single(reader, at, "hyperparameters", space);
}

void check_top_level(Reader& reader, const YamlNode& map, const std::string&, Json& resolved) {
  if (!reader.partial()) {
    check_place(reader, map, resolved);
    check_search(reader, map, resolved);
  }
  check_exact(reader, map, resolved);
  check_zero(reader, map, resolved);
  if (!resolved.contains("batches_per_step")) return;
  // The oldest spelling: batches_per_step scales max_steps and sets the report period.
  const Json step = resolved["batches_per_step"];
  if (map.find("scheduling_unit") != nullptr)
    reader.problem(value_or_map(map, "batches_per_step"), "batches_per_step", "E-CFG-CONFLICT",
                   "scheduling_unit is set too; keep one of them");
  const YamlNode* searcher = map.find("searcher");
  const YamlNode* steps = searcher != nullptr ? searcher->find("max_steps") : nullptr;
  if (step.is_number() && steps != nullptr && steps->kind == YamlNode::Kind::kInt && reader.ok())
    resolved["searcher"]["max_length"] = {{"batches", steps->integer * step.get<std::int64_t>()}};
  resolved["scheduling_unit"] = step;
  resolved.erase("batches_per_step");
}

/// Fields for the periods of reports, validations and checkpoints, and for the training itself.
std::vector<Field> training_fields() {
  constexpr std::int64_t kMaxBatches = 1'000'000'000;
  const Json never = {{"batches", 0}};
  return {defaulted("min_checkpoint_period", length_type(0), never, "interval between checkpoints; 0: none"),
          defaulted("min_validation_period", length_type(0), never, "interval between validations; 0: none"),
          defaulted("perform_initial_validation", boolean(), false, "run a validation before training"),
          defaulted("sanity_validation", boolean(), true,
                    "try two validation batches and the checkpoint storage before training"),
          defaulted("records_per_epoch", whole(0), 0, "records per epoch, if the data set has no length"),
          defaulted("scheduling_unit", whole(1, kMaxBatches), 100, "batches between two training reports"),
          optional("batches_per_step", whole(1, kMaxBatches), "old name of scheduling_unit"),
          section("optimizations", optimizations_type(), "gradient aggregation and precision")};
}

/// Fields of other cluster types and removed features: accepted, stored and ignored.
std::vector<Field> idle_fields() {
  return {optional("integrations", integrations_type(), "services that are notified about the experiment"),
          idle("slurm", cluster_manager_type("sbatch_args")),
          idle("pbs", cluster_manager_type("pbsbatch_args")),
          idle("data_layer", any()),
          idle("internal", any()),
          idle("security", any()),
          idle("tensorboard_storage", any())};
}

Type make_top_level() {
  constexpr std::int64_t kMaxSeconds = 1LL << 31;
  const Type retention = table({optional("log_retention_days", whole(-1, 32767),
                                         "days after the end until the log is deleted; -1: never")});
  std::vector<Field> fields{
      optional("version", whole(0, 0), "version of the configuration format"),
      defaulted("name", text({.min = 1, .max = 128}), "Experiment",
                "name of the experiment; the master appends three random words to the default"),
      defaulted("description", text({.max = 4096, .one_line = false}), "", "description of the experiment"),
      defaulted("labels", {"list of string, or a map whose keys are meant", read_labels}, Json::array(),
                "labels for searching"),
      defaulted("data", free_map(), Json::object(), "free-form data for the trial"),
      defaulted("workspace", text({.max = 128}), "", "workspace of the experiment; requires project"),
      defaulted("project", text({.max = 128}), "", "project of the experiment; requires workspace"),
      required("entrypoint", {"command line, or list of string", read_entrypoint},
               "trial class (model_def:Class), compiled step (step.pt2), or the command line to run"),
      defaulted("max_restarts", whole(0, 1'000'000), 5, "maximum number of restarts of a failed trial"),
      defaulted("hyperparameters", hyperparameters_type(), Json::object(),
                "hyperparameters to search, and constants"),
      required("searcher", searcher_type(),
               "search method and metric, such as {name: single, metric: validation_loss}"),
      section("resources", resources_type(), "resources of a trial"),
      section("environment", environment_type(), "environment of the trial's processes"),
      defaulted("bind_mounts", bind_mounts_type(), Json::array(),
                "directories of the agent to mount in the task"),
      optional("agent_user_group", any(), "set by the cluster: user and group of the task"),
      section("checkpoint_storage", checkpoint_storage_type(),
              "storage of checkpoints; default: set in the master's configuration"),
      defaulted("checkpoint_policy", choice({"best", "all", "none"}), "best",
                "validations that save a checkpoint: best (better than all before), all, or none"),
      section("reproducibility", reproducibility_type(), "seed and determinism"),
      section("profiling", profiling_type(), "profiling of the machine"),
      defaulted("log_policies", log_policies_type(), default_log_policies(),
                "actions for log lines that match a pattern"),
      section("retention_policy", retention, "retention of logs; default: set in the master's configuration"),
      defaulted("preemption_timeout", whole(0, kMaxSeconds), 3600,
                "seconds between the request to stop and SIGKILL"),
      defaulted("hang_timeout", whole(0, kMaxSeconds), 3600,
                "seconds without a batch, a report or output after which a trial is restarted; 0: never"),
      defaulted("debug", boolean(), false, "verbose logging")};
  for (const std::vector<Field>& more : {training_fields(), idle_fields()})
    fields.insert(fields.end(), more.begin(), more.end());
  return table(std::move(fields), check_top_level);
}

}  // namespace

const Type& top_level() {
  static const Type type = make_top_level();
  return type;
}

const Json* find_setting(const Json& config, std::string_view path) {
  if (const Json* value = find_path(config, path); value != nullptr && !value->is_null()) return value;
  const Type* type = &top_level();
  for (;;) {
    const std::size_t dot = path.find('.');
    const std::vector<Field>& fields = type->fields();
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& each) { return each.name == path.substr(0, dot); });
    if (field == fields.end()) return nullptr;
    if (dot == path.npos) return field->absent == Field::Absent::kDefault ? &field->fallback : nullptr;
    type = &field->type;
    path.remove_prefix(dot + 1);
  }
}

void apply_defaults(Json& resolved, const YamlNode& root, const Defaults& defaults) {
  if (!defaults.name.empty() && is_silent(root, "name")) resolved["name"] = defaults.name;
  const YamlNode* exactness = root.find("reproducibility");
  if (exactness == nullptr || is_silent(*exactness, "experiment_seed"))
    resolved["reproducibility"]["experiment_seed"] = defaults.experiment_seed & kMaxSeed;
}

}  // namespace det::expconf
