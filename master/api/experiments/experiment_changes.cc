// Changes to experiments apart from their execution: metadata, archiving, deletion, continuation.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/searcher/searcher.h"
#include "common/yaml/yaml.h"
#include "master/api/accounts/policy.h"
#include "master/api/cluster/job.h"
#include "master/api/cluster/quota.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/checkpoint.h"
#include "master/api/experiments/experiment.h"
#include "master/api/experiments/facts.h"
#include "master/api/experiments/trial.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/model_registry.h"

namespace det::api {
namespace {

// In bytes.
constexpr std::size_t kMaxExperimentName = 256, kMaxExperimentText = 4096, kMaxExperimentNotes = 256 * 1024,
                      kMaxExperimentLabel = 128;
constexpr std::size_t kMaxExperimentLabels = 100;

Status check_text(const std::string& field, const std::string& text, std::size_t longest, bool lines) {
  // Multi-line texts may contain control characters such as line feeds.
  const bool controls = !lines && has_control_characters(text);
  if (text.size() <= longest && !controls && !find_bad_utf8(text)) return {};
  return fail(Code::kInvalidArgument,
              field + ": at most " + std::to_string(longest) + " bytes of UTF-8, no control characters");
}

Status check_label(const std::string& label) {
  if (trim(label).empty()) return fail(Code::kInvalidArgument, "label: must not be empty");
  return check_text("label", label, kMaxExperimentLabel, false);
}

Result<std::vector<std::string>> labels_of(const google::protobuf::ListValue& list) {
  std::vector<std::string> labels;
  for (const auto& value : list.values()) {
    if (value.kind_case() != google::protobuf::Value::kStringValue)
      return fail(Code::kInvalidArgument, "labels: a list of texts");
    TRY(check_label(value.string_value()));
    if (std::find(labels.begin(), labels.end(), value.string_value()) == labels.end())
      labels.push_back(value.string_value());
  }
  if (labels.size() > kMaxExperimentLabels)
    return fail(Code::kInvalidArgument, "labels: at most " + std::to_string(kMaxExperimentLabels));
  return labels;
}

Result<db::ExperimentPatch> patch_of(const v1::PatchExperiment& patch) {
  db::ExperimentPatch out;
  if (patch.has_name()) {
    out.name = patch.name().value();
    if (trim(*out.name).empty()) return fail(Code::kInvalidArgument, "name: must not be empty");
    TRY(check_text("name", *out.name, kMaxExperimentName, false));
  }
  if (patch.has_description()) {
    out.description = patch.description().value();
    TRY(check_text("description", *out.description, kMaxExperimentText, true));
  }
  if (patch.has_notes()) {
    out.notes = patch.notes().value();
    TRY(check_text("notes", *out.notes, kMaxExperimentNotes, true));
  }
  if (patch.has_labels()) {
    TRY_ASSIGN(out.labels, labels_of(patch.labels()));
  }
  return out;
}

/// Returns the configuration with other numbers of checkpoints to keep.
Result<std::string> with_gc_policy(const std::string& config,
                                   const v1::PatchExperiment::PatchCheckpointStorage& keep) {
  if (keep.save_experiment_best() < 0 || keep.save_trial_best() < 0 || keep.save_trial_latest() < 0)
    return fail(Code::kInvalidArgument, "checkpoint_storage: how many to keep must not be negative");
  TRY_ASSIGN(Json json, parse_json(config, {.bytes = 16 << 20, .depth = 64}));
  Json& storage = json["checkpoint_storage"];
  storage["save_experiment_best"] = keep.save_experiment_best();
  storage["save_trial_best"] = keep.save_trial_best();
  storage["save_trial_latest"] = keep.save_trial_latest();
  return dump_json(json);
}

/// Sections that a single search can change when it goes on. Other searches sample from them, and the others
/// are copied into columns of the experiment.
constexpr std::string_view kChangeable[] = {"hyperparameters",
                                            "max_restarts",
                                            "entrypoint",
                                            "environment",
                                            "log_policies",
                                            "profiling",
                                            "data",
                                            "optimizations",
                                            "checkpoint_policy",
                                            "min_validation_period",
                                            "min_checkpoint_period"};

/// Parts of kChangeable that choose the program of the trials or have secrets.
constexpr const char* kOfOwner[] = {"entrypoint", "environment", "data.secrets"};

/// What an override changes: totals of the searcher, all together and each alone with its place in the file,
/// and sections of the configuration.
struct Totals {
  struct Wish {
    searcher::Extended alone;
    Problem problem;  ///< location; the message is filled in on refusal
  };
  searcher::Extended all;
  std::vector<Wish> wishes;
  Json sections = Json::object();
};

Problem at(const std::string& path, const YamlEntry& entry, const char* code, std::string message) {
  return {.code = code,
          .path = path,
          .message = std::move(message),
          .file = "override_config",
          .line = entry.line,
          .column = entry.column};
}

/// Parses an override. After a search has begun totals of the searcher can change, and kChangeable of a
/// single search; each other field is reported as a Problem.
Result<Totals> totals_of(const std::string& override_config, bool single) {
  TRY_ASSIGN(const YamlNode root, parse_yaml(override_config, "override_config"));
  constexpr const char* kFixed = "cannot change in an experiment that goes on; fork it instead";
  Totals totals;
  std::vector<Problem> others;
  // An empty override only runs failed trials again.
  if (root.is_null()) return totals;
  if (!root.is_map()) return fail(Code::kInvalidArgument, "override_config: must be a map");
  for (const YamlEntry& section : root.entries) {
    if (single &&
        std::find(std::begin(kChangeable), std::end(kChangeable), section.key) != std::end(kChangeable)) {
      totals.sections[section.key] = to_json(section.value);
      continue;
    }
    if (section.key != "searcher" || !section.value.is_map()) {
      // All problems are collected before the request is refused.
      others.push_back(at(section.key, section, "E-CFG-CONFLICT", kFixed));
      continue;
    }
    for (const YamlEntry& entry : section.value.entries) {
      // A length may be written as {batches: 100}. The unit is fixed by the search.
      const bool one = entry.value.is_map() && entry.value.entries.size() == 1;
      const YamlNode& number = one ? entry.value.entries.front().value : entry.value;
      const std::string path = "searcher." + entry.key;
      const bool length = entry.key == "max_length" || entry.key == "max_time";
      if (!length && entry.key != "max_trials") {
        others.push_back(at(path, entry, "E-CFG-CONFLICT", kFixed));
      } else if (number.kind != YamlNode::Kind::kInt) {
        others.push_back(at(path, entry, "E-CFG-TYPE", "must be an integer"));
      } else {
        Totals::Wish& wish = totals.wishes.emplace_back();
        wish.problem = at(path, entry, "E-CFG-RANGE", "");
        (length ? wish.alone.max_time : wish.alone.max_trials) = number.integer;
        (length ? totals.all.max_time : totals.all.max_trials) = number.integer;
      }
    }
  }
  if (!others.empty()) return fail(std::move(others));
  return totals;
}

/// Refuses kOfOwner to other users than the owner and cluster admins: the trials have the secrets
/// and the user token of the owner. Errors: kPermissionDenied.
Status check_sections(const Caller& caller, const db::ExperimentDetail& row, const Json& sections,
                      db::Pool& pool) {
  if (caller.user.id == row.owner) return {};
  if (authorize(caller, Action::kAdminister, Target::kCluster, {}, pool)) return {};
  for (const char* const name : kOfOwner) {
    if (find_path(sections, name) == nullptr) continue;
    return fail(Code::kPermissionDenied,
                std::string(name) + ": only user " + row.username + ", the owner of experiment " +
                    std::to_string(row.id.value) +
                    ", or an administrator of the cluster may change it; fork the experiment instead");
  }
  return {};
}

/// Puts `over` above `below`: maps are joined, other values replaced.
void put_above(Json& below, const Json& over) {
  for (const auto& [name, value] : over.items()) {
    if (value.is_object() && below.contains(name) && below[name].is_object())
      put_above(below[name], value);
    else
      below[name] = value;
  }
}

/// Returns the hyperparameters of the first trial of a search, as JSON.
Result<std::string> first_hparams(const expconf::ExperimentConfig& config) {
  TRY_ASSIGN(auto search,
             searcher::Searcher::create(std::make_shared<const expconf::ExperimentConfig>(config)));
  for (const searcher::Action& action : search.handle(searcher::Started{}))
    if (const auto* create = std::get_if<searcher::Create>(&action))
      return searcher::hparams(config.hyperparameters, create->sample)
          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return fail(Code::kInvalidArgument, "the search creates no trial");
}

}  // namespace

void announce_edit(const Context& context, ExperimentId id) {
  context.hub.publish({.kind = loop::Change::Kind::kExperiment, .experiment = id});
}

Status set_archived(const Context& context, ExperimentId id, bool archived) {
  TRY(db::set_archived(context.pool, id, archived));
  announce_edit(context, id);
  return {};
}

Status move_experiments(const Context& context, const std::vector<std::int64_t>& ids, std::int64_t project) {
  TRY_ASSIGN(const auto to, db::get_project(context.pool, project));
  if (to.deletion && to.deletion->empty())
    return fail(Code::kFailedPrecondition,
                "project " + to.name + " is being deleted; choose another project");
  TRY(db::move_experiments(context.pool, ids, project));
  TRY(place_experiments(context, project));
  for (const std::int64_t id : ids) announce_edit(context, ExperimentId(id));
  return {};
}

Status ExperimentService::patch(const v1::PatchExperiment& patch) const {
  const ExperimentId id(patch.id());
  // All fields are validated before the first change.
  TRY_ASSIGN(const db::ExperimentPatch words, patch_of(patch));
  TRY_ASSIGN(const auto row, db::get_experiment(context_.pool, id));
  std::optional<std::string> config;
  if (patch.has_checkpoint_storage()) {
    TRY_ASSIGN(config, with_gc_policy(row.config, patch.checkpoint_storage()));
  }
  // Validation is complete at this point. The core goes first, because it may still refuse.
  if (patch.has_resources()) {
    const auto& resources = patch.resources();
    core::UpdateJob job{.job = id};
    if (resources.has_priority()) job.priority = resources.priority().value();
    if (resources.has_weight()) job.weight = resources.weight().value();
    if (resources.has_max_slots()) job.max_slots = resources.max_slots().value();
    TRY(check_job_update(context_, job));
    TRY(context_.loop.ask(std::move(job)));
  }
  if (config) {
    // Fails if the configuration has changed since it was read (compare and swap).
    TRY(db::replace_config(context_.pool, id, row.config, *config));
    // The collector applies the new policy.
    context_.collector->look_at(id);
  }
  TRY(db::patch_experiment(context_.pool, id, words));
  announce_edit(context_, id);
  return {};
}

Status ExperimentService::PatchExperiment(const Caller&, const v1::PatchExperimentRequest& request,
                                          v1::PatchExperimentResponse* response) {
  TRY(patch(request.experiment()));
  TRY_ASSIGN(const auto row, db::get_experiment(context_.pool, ExperimentId(request.experiment().id())));
  to_proto(row, response->mutable_experiment());
  return {};
}

Status ExperimentService::ArchiveExperiment(const Caller&, const v1::ExperimentActionRequest& request,
                                            v1::ExperimentActionResponse*) {
  return set_archived(context_, ExperimentId(request.id()), true);
}
Status ExperimentService::UnarchiveExperiment(const Caller&, const v1::ExperimentActionRequest& request,
                                              v1::ExperimentActionResponse*) {
  return set_archived(context_, ExperimentId(request.id()), false);
}

/// Returns an ended experiment. Errors: kNotFound; kFailedPrecondition for a live one.
static Result<db::ExperimentDetail> get_ended(const Context& context, ExperimentId id) {
  TRY_ASSIGN(auto row, db::get_experiment(context.pool, id));
  if (core::is_terminal(row.state)) return row;
  return fail(Code::kFailedPrecondition, "experiment " + std::to_string(id.value) + " is " +
                                             std::string(core::state_name(row.state)) +
                                             "; cancel or kill it first");
}

/// Checks that no unfinished experiment outside of `within` starts from a checkpoint of an experiment.
/// Errors: kFailedPrecondition.
static Status check_starts(const Context& context, ExperimentId id,
                           const std::optional<db::Container>& within) {
  TRY_ASSIGN(const auto other, db::started_from(context.pool, id, within));
  if (!other) return {};
  return fail(Code::kFailedPrecondition, "experiment " + std::to_string(other->value) +
                                             " has not ended and starts from a checkpoint of experiment " +
                                             std::to_string(id.value) +
                                             "; wait for its end or kill it first");
}

/// Whether an experiment is in a project or workspace.
static bool is_in(const db::ExperimentDetail& row, const db::Container& container) {
  return container.id == (container.kind == db::Container::Kind::kProject ? row.project : row.workspace);
}

Status remove_experiment(const Context& context, ExperimentId id,
                         const std::optional<db::Container>& within) {
  TRY_ASSIGN(const auto row, get_ended(context, id));
  // It was moved after the list of contents was read.
  if (within && !is_in(row, *within)) return {};
  TRY_ASSIGN(const auto registered, db::registered(context.pool, id));
  TRY(db::check_unregistered(registered));
  TRY(check_starts(context, id, within));
  // After this the core refuses to continue the experiment while its files are removed.
  core::BarExperiment bar{.experiment = id};
  TRY(context.loop.ask(bar));
  Status done = context.collector->remove_all(id);
  if (done) done = db::delete_experiment(context.pool, id);
  if (!done) {
    // An experiment that may be gone stays barred.
    const bool stays = done.error().code != Code::kNotFound && done.error().code != Code::kUnknown;
    bar.barred = false;
    if (stays) (void)context.loop.submit(std::move(bar));
    return done;
  }
  announce_edit(context, id);
  TRY(context.loop.ask(core::ExperimentDeleted{.experiment = id, .request_id = row.request}));
  return {};
}

Status delete_experiment(const Context& context, const Caller& caller, ExperimentId id) {
  TRY_ASSIGN(const auto row, db::get_experiment(context.pool, id));
  TRY(authorize_deletion(caller, row.owner, Target::kExperiment, std::to_string(id.value), context.pool));
  return remove_experiment(context, id);
}

Status ExperimentService::DeleteExperiment(const Caller& caller, const v1::DeleteExperimentRequest& request,
                                           v1::ExperimentActionResponse*) {
  return delete_experiment(context_, caller, ExperimentId(request.experiment_id()));
}

Status ExperimentService::DeleteTensorboardFiles(const Caller&, const v1::DeleteExperimentRequest& request,
                                                 v1::ExperimentActionResponse*) {
  const ExperimentId id(request.experiment_id());
  TRY(get_ended(context_, id));
  return context_.collector->remove_tensorboard(id);
}

Status ExperimentService::PutExperimentLabel(const Caller&, const v1::ExperimentLabelRequest& request,
                                             v1::ExperimentLabelsResponse* response) {
  TRY(check_label(request.label()));
  TRY_ASSIGN(const auto labels,
             db::change_label(context_.pool, ExperimentId(request.experiment_id()), request.label(), true));
  announce_edit(context_, ExperimentId(request.experiment_id()));
  response->mutable_labels()->Assign(labels.begin(), labels.end());
  return {};
}
Status ExperimentService::DeleteExperimentLabel(const Caller&, const v1::ExperimentLabelRequest& request,
                                                v1::ExperimentLabelsResponse* response) {
  TRY_ASSIGN(const auto labels,
             db::change_label(context_.pool, ExperimentId(request.experiment_id()), request.label(), false));
  announce_edit(context_, ExperimentId(request.experiment_id()));
  response->mutable_labels()->Assign(labels.begin(), labels.end());
  return {};
}

Status ExperimentService::GetExperimentLabels(const Caller& caller,
                                              const v1::GetExperimentLabelsRequest& request,
                                              v1::ExperimentLabelsResponse* response) {
  std::optional<std::int64_t> project;
  if (request.project_id() != 0) project = request.project_id();
  TRY_ASSIGN(const auto labels, db::list_labels(context_.pool, project, caller.grants.visible()));
  response->mutable_labels()->Assign(labels.begin(), labels.end());
  return {};
}

Status ExperimentService::rewrite(const Caller& caller, const db::ExperimentDetail& row, const Json& sections,
                                  bool only_check) const {
  TRY_ASSIGN(Json merged, parse_json(row.config, {.bytes = 16 << 20, .depth = 64}));
  put_above(merged, sections);
  Pools pools(context_);
  TRY_ASSIGN(const expconf::ClusterFacts facts, cluster_facts(context_, caller, pools, row.workspace));
  expconf::Defaults defaults;
  TRY_ASSIGN(defaults.policies, policies_of(context_.pool, expconf::Workload::kExperiment, row.workspace));
  TRY_ASSIGN(const expconf::Parsed parsed,
             expconf::parse(to_yaml(merged), "override_config", defaults, {}, &facts));
  TRY_ASSIGN(const std::string hparams, first_hparams(parsed.config));
  if (only_check) return {};
  return db::rewrite_experiment(context_.pool, row.id, row.config, dump_json(parsed.config.resolved),
                                hparams);
}

Status ExperimentService::ContinueExperiment(const Caller& caller,
                                             const v1::ContinueExperimentRequest& request,
                                             v1::ContinueExperimentResponse* response) {
  const ExperimentId id(request.id());
  TRY_ASSIGN(const auto row, db::get_experiment(context_.pool, id));
  TRY_ASSIGN(const Totals totals, totals_of(request.override_config(), row.searcher_name == "single"));
  TRY(check_sections(caller, row, totals.sections, context_.pool));
  std::optional<searcher::Extended> more;
  if (!totals.wishes.empty()) more = totals.all;
  if (!core::is_terminal(row.state)) {
    return fail(Code::kFailedPrecondition,
                "experiment " + std::to_string(id.value) + " has not ended; activate it");
  }
  // The storage may have been allowed when the experiment was submitted, and not now.
  TRY_ASSIGN(const Json config, parse_json(row.config, {.bytes = 16 << 20, .depth = 64}));
  TRY(context_.storages->get()->check(config.value("checkpoint_storage", Json())));
  if (!totals.sections.empty()) {
    // The search is asked first: a configuration that has changed stays so.
    TRY(continue_search(id, more, true, true));
    TRY(rewrite(caller, row, totals.sections, request.validate_only()));
  }
  Status done = continue_search(id, more, request.validate_only(), true);
  // The core reports one error for all totals together.
  if (!done && done.error().code == Code::kInvalidArgument) {
    // Each total is checked alone, to report the refused ones at their lines.
    std::vector<Problem> problems;
    for (const Totals::Wish& wish : totals.wishes) {
      const Status alone = continue_search(id, wish.alone, true);
      if (alone) continue;
      problems.push_back(wish.problem);
      problems.back().message = alone.error().message;
    }
    if (!problems.empty()) return fail(std::move(problems));
  }
  TRY(done);
  TRY_ASSIGN(const auto now, db::get_experiment(context_.pool, id));
  to_proto(now, response->mutable_experiment());
  return {};
}

}  // namespace det::api
